#include "services/journal/postgres/schema.hpp"

#include <algorithm>

namespace godwit::postgres {

namespace {

/// Tables of records, by the hash of the session's name: each stays small enough for its index to be kept in
/// memory, and vacuum and backup work on parts. Changing it takes a migration.
constexpr int partitions = 16;

constexpr std::string_view look = R"(
SELECT w.ord, h.tenant, h.sequence, h.epoch, h.owner, h.running, r.nonce
FROM unnest($1::bytea[], $2::int8[]) WITH ORDINALITY AS w (session, place, ord)
LEFT JOIN @.heads AS h ON h.session = w.session
LEFT JOIN @.records AS r ON r.session = w.session AND r.sequence = w.place)";

// Under read committed a row that another transaction holds is waited for, and its condition is looked at
// again afterwards: of writers that expect the same end exactly one finds it.
constexpr std::string_view change = R"(
WITH wanted AS (
  SELECT * FROM unnest($1::bytea[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::bytea[], $7::bool[])
    WITH ORDINALITY AS w (session, expected, epoch, next, next_epoch, owner, running, ord)
), moved AS (
  UPDATE @.heads AS h
  SET sequence = w.next, epoch = w.next_epoch, owner = coalesce(w.owner, h.owner),
    running = coalesce(w.running, h.running), nonce = $8::bytea
  FROM wanted AS w
  WHERE h.session = w.session AND h.sequence = w.expected AND h.epoch = w.epoch
  RETURNING w.ord, h.session, h.tenant, h.sequence, h.epoch, h.owner, h.running
), added AS (
  INSERT INTO @.records (session, sequence, nonce, body)
  SELECT m.session, r.sequence, $8::bytea, r.body
  FROM unnest($9::int8[], $10::int8[], $11::bytea[]) AS r (ord, sequence, body)
  JOIN moved AS m ON m.ord = r.ord
)
SELECT ord, tenant, sequence, epoch, owner, running FROM moved)";

constexpr std::string_view open = R"(
WITH wanted AS (
  SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bool[], $5::int8[])
    WITH ORDINALITY AS w (session, tenant, owner, running, sequence, ord)
), fresh AS (
  INSERT INTO @.heads (session, tenant, sequence, epoch, owner, running, nonce)
  SELECT session, tenant, sequence, 1, owner, running, $6::bytea FROM wanted
  ON CONFLICT (session) DO NOTHING
  RETURNING session
), added AS (
  INSERT INTO @.records (session, sequence, nonce, body)
  SELECT w.session, r.sequence, $6::bytea, r.body
  FROM unnest($7::int8[], $8::int8[], $9::bytea[]) AS r (ord, sequence, body)
  JOIN wanted AS w ON w.ord = r.ord
  JOIN fresh AS f ON f.session = w.session
)
SELECT w.ord FROM wanted AS w JOIN fresh AS f ON f.session = w.session)";

constexpr std::string_view erase_heads =
  "DELETE FROM @.heads WHERE session = ANY ($1::bytea[]) RETURNING session";
constexpr std::string_view erase_records = "DELETE FROM @.records WHERE session = ANY ($1::bytea[])";
constexpr std::string_view touch = "UPDATE @.heads SET nonce = nonce WHERE session = ANY ($1::bytea[])";

// An entry in the log of changes that nobody reads: a transaction without one would not wait for standbys.
constexpr std::string_view barrier = "SELECT pg_logical_emit_message(true, 'godwit', 'barrier'::text)";

constexpr std::string_view head =
  "SELECT tenant, sequence, epoch, owner, running FROM @.heads WHERE session = $1::bytea";

// Head and records of the same moment, for one statement sees one state.
constexpr std::string_view read = R"(
SELECT h.sequence, r.sequence, r.body
FROM @.heads AS h
LEFT JOIN LATERAL (
  SELECT sequence, body FROM @.records
  WHERE session = $1::bytea AND sequence >= $2::int8 AND sequence <= h.sequence
  ORDER BY sequence LIMIT $3::int8
) AS r ON true
WHERE h.session = $1::bytea ORDER BY r.sequence)";

constexpr std::string_view list = R"(
SELECT session, tenant, sequence, epoch, owner, running FROM @.heads
WHERE session > $1::bytea ORDER BY session LIMIT $2::int8)";

constexpr std::array<const char*, query_count> names{"godwit_look", "godwit_change", "godwit_open",
  "godwit_erase_heads", "godwit_erase_records", "godwit_touch", "godwit_barrier", "godwit_head",
  "godwit_read", "godwit_list"};

} // namespace

const char* name_of(query which) {
  return names[static_cast<std::size_t>(which)];
}

std::array<std::string, query_count> statement_texts(std::string_view schema) {
  const std::array<std::string_view, query_count> texts{
    look, change, open, erase_heads, erase_records, touch, barrier, head, read, list};
  std::array<std::string, query_count> out;
  std::transform(
    texts.begin(), texts.end(), out.begin(), [&](std::string_view one) { return in_schema(one, schema); });
  return out;
}

std::vector<std::string> migration(std::int64_t to, std::string_view schema) {
  std::vector<std::string> out;
  if (to != 1)
    return out;
  // Names of sessions, tenants and nodes are bytes. Half-full pages let heads be changed in place.
  out.emplace_back("CREATE SCHEMA IF NOT EXISTS @");
  out.emplace_back("CREATE TABLE @.schema_version (single boolean PRIMARY KEY DEFAULT true CHECK (single), "
                   "version int8 NOT NULL)");
  out.emplace_back("CREATE TABLE @.heads (session bytea PRIMARY KEY, tenant bytea NOT NULL, "
                   "sequence int8 NOT NULL CHECK (sequence > 0), epoch int8 NOT NULL CHECK (epoch > 0), "
                   "owner bytea NOT NULL, running boolean NOT NULL, nonce bytea NOT NULL) "
                   "WITH (fillfactor = 50)");
  out.emplace_back("CREATE TABLE @.records (session bytea NOT NULL, "
                   "sequence int8 NOT NULL CHECK (sequence > 0), nonce bytea NOT NULL, "
                   "body bytea NOT NULL, PRIMARY KEY (session, sequence)) PARTITION BY HASH (session)");
  for (int i = 0; i < partitions; ++i)
    out.push_back("CREATE TABLE @.records_" + std::to_string(i)
                  + " PARTITION OF @.records FOR VALUES WITH (MODULUS " + std::to_string(partitions)
                  + ", REMAINDER " + std::to_string(i) + ")");
  out.emplace_back("INSERT INTO @.schema_version (version) VALUES (1)");
  for (auto& one : out)
    one = in_schema(one, schema);
  return out;
}

versioned_tables journal_tables() {
  return {"the tables of the journal", "schema_version", schema_version, migration};
}

std::vector<std::pair<std::string, std::string>> journal_statements(std::string_view schema) {
  const auto texts = statement_texts(schema);
  std::vector<std::pair<std::string, std::string>> out;
  for (std::size_t i = 0; i < texts.size(); ++i)
    out.emplace_back(names[i], texts[i]);
  return out;
}

} // namespace godwit::postgres
