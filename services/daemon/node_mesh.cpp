#include "services/daemon/node_mesh.hpp"

#include "services/daemon/node_registry.hpp"
#include "services/link/keys.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

namespace godwit {

namespace {

/// How blocks of the KV cache are named: nodes that do it otherwise could not tell each other of them.
constexpr auto hash_mode = "xxh3-128-secret";

/// An actor's answer may take as long as the slowest call of the API: the move of a session's KV.
constexpr std::chrono::milliseconds longest_answer{80'000};

std::string tcp(const endpoint& where, unsigned offset) {
  const auto colons = where.host.find(':') != std::string::npos;
  return fmt::format(
    "tcp://{}{}{}:{}", colons ? "[" : "", where.host, colons ? "]" : "", where.port + offset);
}

node_endpoints endpoints_at(const endpoint& first) {
  return {tcp(first, 0), tcp(first, 1), tcp(first, 2)};
}

result<std::optional<link::node_keys>> keys_of(const config& settings) {
  if (settings.mesh_plain)
    return std::optional<link::node_keys>();
  auto keys = link::load_keys(settings.mesh_key);
  if (!keys)
    return fail(keys.error().code, keys.error().message, "mesh_key");
  if (keys->node.value != settings.node)
    return fail(errc::invalid_argument,
      fmt::format("mesh_key holds the keys of the node {}, and this one is called {}: see the setting node",
        keys->node.value, settings.node),
      "mesh_key");
  return std::optional(std::move(*keys));
}

using counters = link::link_counters;

struct counter_row {
  const char* name;
  metric_kind kind;
  const char* help;
  counters::count counters::*member;
};

constexpr std::array counter_rows{
  counter_row{"godwit_link_letters_sent_total", metric_kind::total,
    "Letters to other nodes, those in bulk too", &counters::letters_sent},
  counter_row{"godwit_link_letters_received_total", metric_kind::total, "Letters of other nodes",
    &counters::letters_received},
  counter_row{"godwit_link_bytes_sent_total", metric_kind::total, "Bytes of them", &counters::bytes_sent},
  counter_row{
    "godwit_link_bytes_received_total", metric_kind::total, "Bytes of them", &counters::bytes_received},
  counter_row{"godwit_link_bulk_sent_total", metric_kind::total, "Those of them that took the bulk lane",
    &counters::bulk_sent},
  counter_row{"godwit_link_bulk_received_total", metric_kind::total, "Those of them that took the bulk lane",
    &counters::bulk_received},
  counter_row{"godwit_link_bulk_bytes_sent_total", metric_kind::total, "Bytes of them in the bulk lane",
    &counters::bulk_bytes_sent},
  counter_row{"godwit_link_bulk_bytes_received_total", metric_kind::total, "Bytes of them in the bulk lane",
    &counters::bulk_bytes_received},
  counter_row{
    "godwit_link_events_sent_total", metric_kind::total, "Events published", &counters::events_sent},
  counter_row{"godwit_link_events_received_total", metric_kind::total, "Events of other nodes",
    &counters::events_received},
  counter_row{"godwit_link_events_missed_total", metric_kind::total, "Events that never came here",
    &counters::events_missed},
  counter_row{"godwit_link_oversized_total", metric_kind::total, "Frames over a limit, among the malformed",
    &counters::oversized},
  counter_row{"godwit_link_connections_total", metric_kind::total, "Connections that others have opened",
    &counters::connections},
  counter_row{
    "godwit_link_handshakes_total", metric_kind::total, "Of those, that have got in", &counters::handshakes},
  counter_row{"godwit_link_disconnects_total", metric_kind::total,
    "Of those, that have ended: the other end left, or sent what is too large", &counters::disconnects},
  counter_row{"godwit_link_key_conflicts_total", metric_kind::total, "Nodes named with another one's key",
    &counters::key_conflicts},
  counter_row{"godwit_link_overloaded_total", metric_kind::total,
    "Times that a peer lost its place because it took too little", &counters::overloaded},
  counter_row{"godwit_link_bulk_redials_total", metric_kind::total,
    "Bulk connections that died alone and were made anew", &counters::bulk_redials},
  counter_row{"godwit_link_credit_broken_total", metric_kind::total, "Items of streams without credit",
    &counters::credit_broken},
  counter_row{"godwit_link_streams", metric_kind::level, "Streams in both directions", &counters::streams},
  counter_row{"godwit_link_queued_commands", metric_kind::level,
    "What waited for the link's thread when it last looked", &counters::queued_commands},
  counter_row{"godwit_link_malformed_total", metric_kind::total, "What came and was no frame or letter",
    &counters::malformed},
  counter_row{
    "godwit_link_stale_total", metric_kind::total, "Frames of earlier conversations", &counters::stale},
  counter_row{"godwit_link_unknown_keys_total", metric_kind::total, "Connections of keys that are not known",
    &counters::unknown_keys},
  counter_row{
    "godwit_link_refused_total", metric_kind::total, "Greetings that were turned away", &counters::refused},
  counter_row{"godwit_link_overflows_total", metric_kind::total, "Refused because a queue was full",
    &counters::overflows},
  counter_row{"godwit_link_expired_total", metric_kind::total, "Dropped because their deadline had passed",
    &counters::expired},
  counter_row{
    "godwit_link_peers_lost_total", metric_kind::total, "Times that a peer was lost", &counters::peers_lost},
  counter_row{"godwit_link_pending_requests", metric_kind::level, "Requests to other nodes without an answer",
    &counters::pending_requests},
  counter_row{"godwit_link_serving_requests", metric_kind::level, "Requests of other nodes without an answer",
    &counters::serving_requests},
};

using values = std::vector<metrics::labelled>;
using source_of_mesh = std::function<std::shared_ptr<const mesh>()>;

/// A figure with a value for each of a list that the mesh's figures have.
template <class Item, class Read>
void watch_list(metrics& figures, const source_of_mesh& source, const char* name, metric_kind kind,
  const char* help, const char* label, std::vector<Item> mesh_figures::*list,
  std::string (*called)(const Item&), Read read) {
  figures.watch_each(name, kind, help, [=] {
    values out;
    const auto now = source();
    if (!now)
      return out;
    const auto all = now->figures();
    for (const auto& item : all.*list)
      out.push_back({{{label, called(item)}}, static_cast<double>(read(item))});
    return out;
  });
}

} // namespace

result<mesh_options> mesh_options_of(const config& settings, const node_roles& roles, const model_card& card,
  const std::string& version, std::function<void(const std::string&)> report) {
  mesh_options out;
  out.node = node_name(settings.node);
  out.roles = roles.names();
  out.models = {{card.id, card.fingerprint}};
  out.software = version;
  out.hash_mode = hash_mode;
  out.exchange.answer = longest_answer;
  if (settings.mesh_listen) {
    out.listen = endpoints_at(*settings.mesh_listen);
    if (!settings.mesh_advertise.empty())
      out.advertise = endpoints_at({settings.mesh_advertise, settings.mesh_listen->port});
  }
  auto keys = keys_of(settings);
  if (!keys)
    return fail(keys);
  out.keys = std::move(*keys);
  auto nodes = open_registry(settings, roles, std::move(report));
  if (!nodes)
    return fail(nodes);
  out.nodes = std::move(*nodes);
  return out;
}

std::vector<needed_role> needed_of(const node_roles& roles) {
  std::vector<needed_role> out;
  if (roles.gateway && !roles.session)
    out.push_back({"session", "directory"});
  if ((roles.gateway || roles.session) && !roles.tokenizer)
    out.push_back({"tokenizer", "tokenizer"});
  if ((roles.gateway || roles.session) && !roles.router)
    out.push_back({"router", "router"});
  return out;
}

void watch_mesh(metrics& figures, source_of_mesh source) {
  for (const auto& row : counter_rows)
    figures.watch_each(row.name, row.kind, row.help, [source, member = row.member] {
      values out;
      if (const auto now = source())
        out.push_back({{}, static_cast<double>((now->counters().*member).load(std::memory_order_relaxed))});
      return out;
    });

  using peer = link::peer_status;
  const auto of_peers = [&](const char* name, metric_kind kind, const char* help, auto read) {
    watch_list<peer>(
      figures, source, name, kind, help, "peer", &mesh_figures::peers,
      [](const peer& one) { return one.node.value; }, read);
  };
  of_peers("godwit_peer_up", metric_kind::level, "1 while the node is up",
    [](const peer& one) { return one.state == link::peer_state::up ? 1 : 0; });
  of_peers("godwit_peer_round_trip_seconds", metric_kind::level, "Time to the node and back",
    [](const peer& one) { return std::chrono::duration<double>(one.round_trip).count(); });
  of_peers("godwit_peer_queued_letters", metric_kind::level, "Letters that wait for the node",
    [](const peer& one) { return one.queued_parcels; });
  of_peers("godwit_peer_queued_bytes", metric_kind::level, "Bytes of them",
    [](const peer& one) { return one.queued_bytes; });
  of_peers("godwit_peer_queued_bulk", metric_kind::level, "Messages in bulk that wait for the node",
    [](const peer& one) { return one.queued_bulk; });
  of_peers("godwit_peer_queued_bulk_bytes", metric_kind::level, "Bytes of them",
    [](const peer& one) { return one.queued_bulk_bytes; });
  of_peers("godwit_peer_letters_sent_total", metric_kind::total, "Letters to the node",
    [](const peer& one) { return one.letters_sent; });
  of_peers("godwit_peer_letters_received_total", metric_kind::total, "Letters of the node",
    [](const peer& one) { return one.letters_received; });
  of_peers("godwit_peer_bytes_sent_total", metric_kind::total, "Bytes to the node",
    [](const peer& one) { return one.bytes_sent; });
  of_peers("godwit_peer_bytes_received_total", metric_kind::total, "Bytes of the node",
    [](const peer& one) { return one.bytes_received; });
  of_peers("godwit_peer_credit", metric_kind::level, "Items of streams that the node takes now",
    [](const peer& one) { return one.credit; });

  using role = mesh_figures::role;
  const auto of_roles = [&](const char* name, metric_kind kind, const char* help, auto read) {
    watch_list<role>(
      figures, source, name, kind, help, "role", &mesh_figures::roles,
      [](const role& one) { return one.name; }, read);
  };
  of_roles("godwit_role_targets", metric_kind::level, "Nodes that can stand in for a role",
    [](const role& one) { return one.targets; });
  of_roles("godwit_role_refused_total", metric_kind::total, "Requests for which nobody was there",
    [](const role& one) { return one.refused; });
  of_roles("godwit_role_dropped_total", metric_kind::total, "Letters for which nobody was there",
    [](const role& one) { return one.dropped; });
  figures.watch_each("godwit_registry_up", metric_kind::level,
    "1 while the registry of nodes tells which there are, 0 while it is away", [source] {
      values out;
      if (const auto now = source())
        out.push_back({{}, now->figures().registry_trouble.empty() ? 1.0 : 0.0});
      return out;
    });
  const auto of_all = [&](const char* name, metric_kind kind, const char* help, auto read) {
    figures.watch_each(name, kind, help, [source, read] {
      values out;
      if (const auto now = source())
        out.push_back({{}, static_cast<double>(read(now->figures()))});
      return out;
    });
  };
  of_all("godwit_link_references", metric_kind::level, "Actors of this node that others hold",
    [](const mesh_figures& all) { return all.references; });
  of_all("godwit_link_dead_letters_total", metric_kind::total,
    "Letters to nodes or actors that are not there",
    [](const mesh_figures& all) { return all.dead_letters; });
  of_all("godwit_link_malformed_messages_total", metric_kind::total,
    "Messages of other nodes that no actor could be given, in good frames",
    [](const mesh_figures& all) { return all.malformed_messages; });
  of_all("godwit_link_untaken_places", metric_kind::level,
    "Letters of other nodes that actors have not taken yet, and one more for each KiB of them",
    [](const mesh_figures& all) { return all.untaken; });
  of_all("godwit_link_untaken_overflows_total", metric_kind::total,
    "Nodes that lost their place because actors here took too few of their letters",
    [](const mesh_figures& all) { return all.untaken_overflows; });
}

} // namespace godwit
