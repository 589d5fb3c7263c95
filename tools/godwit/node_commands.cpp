#include "tools/godwit/node_commands.hpp"

#include <fmt/format.h>

namespace godwit::cli {

namespace {

std::string joined(const nlohmann::ordered_json& list) {
  std::string out;
  for (const auto& item : list)
    out += (out.empty() ? "" : ",") + plain(item);
  return out;
}

/// What the link knows of a node: that it is this one, or how far it is.
std::string link_of(const nlohmann::ordered_json& node) {
  const auto round_trip = member(node, "round_trip_s");
  const auto link = plain(member(node, "link"));
  return round_trip.is_number() ? fmt::format("{} {:.2f} ms", link, round_trip.get<double>() * 1000) : link;
}

/// Whether a name can stand in a path as it is; one that cannot is no node's.
bool is_node_name(const std::string& name) {
  return !name.empty()
         && name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
              == std::string::npos;
}

} // namespace

int show_nodes(client& node, const settings& how) {
  const auto answer = node.call("GET", "/v1/nodes");
  if (!answer)
    return report(answer.error(), how.json);
  if (how.json) {
    print_json(answer->body);
    return exit_ok;
  }
  std::vector<std::vector<std::string>> rows{{"NODE", "STATE", "LINK", "ROLES", "MODEL", "REASON"}};
  bool reasons = false;
  for (const auto& item : member(answer->body, "data")) {
    rows.push_back({plain(member(item, "name")), plain(member(item, "state")), link_of(item),
      joined(member(item, "roles")), plain(member(item, "model")), plain(member(item, "reason"))});
    reasons = reasons || !rows.back().back().empty();
  }
  if (!reasons)
    for (auto& row : rows)
      row.pop_back();
  print_table(rows);
  return exit_ok;
}

int show_actors(client& node, const settings& how, const std::string& of) {
  if (!of.empty() && !is_node_name(of))
    return report({errc::invalid_argument, "no node can be called " + of, {}, {}}, how.json);
  const auto answer = node.call("GET", of.empty() ? "/v1/actors" : "/v1/actors?node=" + of);
  if (!answer)
    return report(answer.error(), how.json);
  if (how.json) {
    print_json(answer->body);
    return exit_ok;
  }
  std::vector<std::vector<std::string>> rows{{"NODE", "ACTOR", "STATE", "GAUGES"}};
  for (const auto& item : member(answer->body, "data")) {
    std::string gauges;
    const auto values = member(item, "gauges");
    for (const auto& [name, value] : values.items())
      gauges += (gauges.empty() ? "" : " ") + name + "=" + plain(value);
    rows.push_back(
      {plain(member(item, "node")), plain(member(item, "name")), plain(member(item, "state")), gauges});
  }
  print_table(rows);
  return exit_ok;
}

int trace_actor(client& node, const settings& how, const std::string& actor, const std::string& of,
  std::uint32_t letters, std::uint32_t seconds) {
  if (!is_node_name(actor) || (!of.empty() && !is_node_name(of)))
    return report({errc::invalid_argument, "no actor or node can be called that", {}, {}}, how.json);
  const auto answer = node.call("POST", "/v1/actors/" + actor + "/trace" + (of.empty() ? "" : "?node=" + of),
    nlohmann::ordered_json{{"letters", letters}, {"seconds", seconds}});
  if (!answer)
    return report(answer.error(), how.json);
  if (how.json) {
    print_json(answer->body);
    return exit_ok;
  }
  std::vector<std::vector<std::string>> rows{{"TIME", "KIND", "BYTES", "FROM", "TO", "TYPES"}};
  for (const auto& item : member(answer->body, "letters"))
    rows.push_back({fmt::format("{:.6f}", member(item, "at_s").get<double>()), plain(member(item, "kind")),
      plain(member(item, "bytes")), plain(member(item, "from")), plain(member(item, "to")),
      plain(member(item, "types"))});
  print_table(rows);
  return exit_ok;
}

int drain_node(client& node, const settings& how, const std::string& name) {
  if (!is_node_name(name))
    return report({errc::invalid_argument, "no node can be called " + name, {}, {}}, how.json);
  const auto answer = node.call("POST", "/v1/nodes/" + name + "/drain");
  if (!answer)
    return report(answer.error(), how.json);
  if (how.json)
    print_json(answer->body);
  else
    fmt::print("{} {}\n", plain(member(answer->body, "name")), plain(member(answer->body, "state")));
  return exit_ok;
}

} // namespace godwit::cli
