#include "services/mesh/registry_table.hpp"

#include "services/link/hello.hpp"
#include "services/link/zmq_transport.hpp"
#include "services/mesh/host.hpp"

#include <algorithm>
#include <limits>

namespace godwit::registry_table {

namespace {

using postgres::statement;

constexpr std::size_t most_roles = 32;
constexpr std::size_t most_models = 64;
constexpr std::size_t most_text = 255;

constexpr std::string_view beat_text = R"(
UPDATE @.nodes SET beat = clock_timestamp()
WHERE name = $1::text AND holder = $2::bytea
  AND beat >= clock_timestamp() - $3::int8 * interval '1 millisecond'
RETURNING incarnation)";

// The conditions are looked at after waiting for the row, and by then with the clock of then.
constexpr std::string_view claim_text = R"(
WITH taken AS (
  INSERT INTO @.nodes AS n (name, holder, incarnation, beat, letters, bulk, events, public_key, roles, models,
    fingerprints, capacity)
  VALUES ($1::text, $2::bytea, $3::int8, clock_timestamp(), $5::text, $6::text, $7::text, $8::text, $9::text[],
    $10::text[], $11::text[], $12::int8)
  ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, beat = clock_timestamp(),
    incarnation = CASE WHEN n.holder = excluded.holder AND n.beat >= clock_timestamp() - $4::int8 * interval '1 millisecond'
      THEN greatest(excluded.incarnation, n.incarnation) ELSE greatest(excluded.incarnation, n.incarnation + 1) END,
    letters = excluded.letters, bulk = excluded.bulk, events = excluded.events,
    public_key = excluded.public_key, roles = excluded.roles, models = excluded.models,
    fingerprints = excluded.fingerprints, capacity = excluded.capacity
  WHERE n.holder = excluded.holder OR n.beat < clock_timestamp() - $4::int8 * interval '1 millisecond'
  RETURNING name, incarnation
)
SELECT incarnation, pg_notify('@_nodes', name) FROM taken)";

constexpr std::string_view holder_text =
  "SELECT holder, (extract(epoch FROM beat) * 1000000)::int8 FROM @.nodes WHERE name = $1::text";

constexpr std::string_view list_text =
  "SELECT name, incarnation, letters, bulk, events, public_key, roles, models, fingerprints, capacity, "
  "(extract(epoch FROM clock_timestamp() - beat) * 1000)::int8 FROM @.nodes ORDER BY beat DESC LIMIT 4096";
static_assert(most_nodes == 4096);

constexpr std::string_view leave_text =
  "WITH gone AS (DELETE FROM @.nodes WHERE name = $1::text AND holder = $2::bytea RETURNING name) "
  "SELECT pg_notify('@_nodes', name) FROM gone";

constexpr std::string_view sweep_text =
  "DELETE FROM @.nodes WHERE beat < clock_timestamp() - interval '1 day'";

constexpr std::array<std::pair<const char*, std::string_view>, 6> all{{{"godwit_nodes_beat", beat_text},
  {"godwit_nodes_claim", claim_text}, {"godwit_nodes_holder", holder_text}, {"godwit_nodes_list", list_text},
  {"godwit_nodes_leave", leave_text}, {"godwit_nodes_sweep", sweep_text}}};

std::vector<std::string> migration(std::int64_t to, std::string_view schema) {
  std::vector<std::string> out;
  if (to != 1)
    return out;
  out.emplace_back("CREATE SCHEMA IF NOT EXISTS @");
  out.emplace_back("CREATE TABLE @.registry_version (single boolean PRIMARY KEY DEFAULT true CHECK (single), "
                   "version int8 NOT NULL)");
  // Few rows that change each second: room in their pages lets them be changed in place.
  out.emplace_back(
    "CREATE TABLE @.nodes (name text PRIMARY KEY, holder bytea NOT NULL, "
    "incarnation int8 NOT NULL, beat timestamptz NOT NULL, letters text NOT NULL, "
    "bulk text NOT NULL, events text NOT NULL, public_key text NOT NULL, roles text[] NOT NULL, "
    "models text[] NOT NULL, fingerprints text[] NOT NULL, capacity int8 NOT NULL) "
    "WITH (fillfactor = 30)");
  out.emplace_back("INSERT INTO @.registry_version (version) VALUES (1)");
  for (auto& one : out)
    one = postgres::in_schema(one, schema);
  return out;
}

statement prepared(const char* name, std::vector<postgres::parameter> parameters) {
  return {name, true, std::move(parameters)};
}

tl::unexpected<error> wrong(const std::string& node, const std::string& what) {
  return fail(errc::corrupt, "the record of the node " + node + " in the registry " + what);
}

std::string text_in(postgres::field from) {
  return from ? std::string(*from) : std::string();
}

/// Numbers of int8 columns that are none below zero.
std::optional<std::uint64_t> count_in(postgres::field from) {
  const auto number = postgres::number_of(from);
  return number && *number >= 0 ? std::optional(static_cast<std::uint64_t>(*number)) : std::nullopt;
}

bool short_enough(const std::vector<std::string>& texts) {
  return std::ranges::all_of(texts, [](const auto& one) { return one.size() <= most_text; });
}

} // namespace

postgres::versioned_tables tables() {
  return {"the tables of the registry", "registry_version", 1, migration};
}

std::vector<std::pair<std::string, std::string>> statements(std::string_view schema) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [name, text] : all)
    out.emplace_back(name, postgres::in_schema(text, schema));
  return out;
}

statement listen(std::string_view schema) {
  return {postgres::in_schema("LISTEN @_nodes", schema), false, {}};
}

statement beat(const node_name& name, std::string_view holder, std::chrono::milliseconds limit) {
  return prepared("godwit_nodes_beat",
    {postgres::text(name.value), postgres::value(holder), postgres::value(std::int64_t{limit.count()})});
}

statement claim(const node_record& node, std::string_view holder, std::chrono::milliseconds limit) {
  std::vector<std::string> models;
  std::vector<std::string> fingerprints;
  for (const auto& [model, fingerprint] : node.models) {
    models.push_back(model);
    fingerprints.push_back(fingerprint);
  }
  return prepared("godwit_nodes_claim",
    {postgres::text(node.name.value), postgres::value(holder),
      postgres::value(static_cast<std::int64_t>(node.incarnation)),
      postgres::value(std::int64_t{limit.count()}), postgres::text(node.endpoints.letters),
      postgres::text(node.endpoints.bulk), postgres::text(node.endpoints.events),
      postgres::text(node.key ? link::to_z85(*node.key) : std::string()), postgres::text_array(node.roles),
      postgres::text_array(models), postgres::text_array(fingerprints),
      postgres::value(std::int64_t{node.capacity})});
}

statement holder_of(const node_name& name) {
  return prepared("godwit_nodes_holder", {postgres::text(name.value)});
}

statement list() {
  return prepared("godwit_nodes_list", {});
}

statement leave(const node_name& name, std::string_view holder) {
  return prepared("godwit_nodes_leave", {postgres::text(name.value), postgres::value(holder)});
}

statement sweep() {
  return prepared("godwit_nodes_sweep", {});
}

result<tabled_node> node_of(const std::array<postgres::field, columns>& row, bool plain) {
  const auto name = text_in(row[0]);
  if (!link::valid_node_name(name))
    return fail(errc::corrupt, "a record in the registry has no name of a node");
  tabled_node out;
  auto& record = out.record;
  record.name = node_name(name);
  const auto incarnation = count_in(row[1]);
  const auto capacity = count_in(row[9]);
  const auto age = postgres::number_of(row[10]);
  if (!incarnation || !capacity || *capacity > std::numeric_limits<std::uint32_t>::max() || !age)
    return wrong(name, "has a number that is none");
  record.incarnation = *incarnation;
  record.capacity = static_cast<std::uint32_t>(*capacity);
  // A beat of the future, after the clock was set back, counts as one of now.
  out.age = std::chrono::milliseconds(std::max(*age, std::int64_t{0}));

  record.endpoints = {text_in(row[2]), text_in(row[3]), text_in(row[4])};
  for (const auto* each : {&record.endpoints.letters, &record.endpoints.bulk, &record.endpoints.events}) {
    if (!is_tcp_endpoint(*each))
      return wrong(name, "has an address that is none");
    if (plain && !link::is_loopback(*each))
      return wrong(name, "is not on loopback, and this mesh has no keys");
  }

  const auto key = text_in(row[5]);
  if (key.empty() != plain)
    return wrong(name, plain ? "has a key, and this mesh has none" : "has no key");
  if (!plain) {
    const auto known = link::from_z85(key);
    if (!known)
      return wrong(name, "has a key that is none");
    record.key = *known;
  }

  auto roles = postgres::texts_of(row[6], most_roles);
  auto models = postgres::texts_of(row[7], most_models);
  auto fingerprints = postgres::texts_of(row[8], most_models);
  if (!roles || !models || !fingerprints || models->size() != fingerprints->size() || !short_enough(*roles)
      || !short_enough(*models) || !short_enough(*fingerprints))
    return wrong(name, "has lists of roles or models that do not check");
  record.roles = std::move(*roles);
  for (std::size_t i = 0; i < models->size(); ++i)
    record.models.emplace(std::move((*models)[i]), std::move((*fingerprints)[i]));
  return out;
}

} // namespace godwit::registry_table
