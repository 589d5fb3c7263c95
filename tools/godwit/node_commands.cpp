#include "tools/godwit/node_commands.hpp"

#include <fmt/core.h>

namespace godwit::cli {

namespace {

std::string joined(const nlohmann::ordered_json& list) {
  std::string out;
  for (const auto& item : list)
    out += (out.empty() ? "" : ",") + plain(item);
  return out;
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
  std::vector<std::vector<std::string>> rows{{"NODE", "STATE", "ROLES", "MODEL"}};
  for (const auto& item : member(answer->body, "data"))
    rows.push_back({plain(member(item, "name")), plain(member(item, "state")), joined(member(item, "roles")),
      plain(member(item, "model"))});
  print_table(rows);
  return exit_ok;
}

int show_actors(client& node, const settings& how) {
  const auto answer = node.call("GET", "/v1/actors");
  if (!answer)
    return report(answer.error(), how.json);
  if (how.json) {
    print_json(answer->body);
    return exit_ok;
  }
  std::vector<std::vector<std::string>> rows{{"ACTOR", "STATE", "GAUGES"}};
  for (const auto& item : member(answer->body, "data")) {
    std::string gauges;
    const auto values = member(item, "gauges");
    for (const auto& [name, value] : values.items())
      gauges += (gauges.empty() ? "" : " ") + name + "=" + plain(value);
    rows.push_back({plain(member(item, "name")), plain(member(item, "state")), gauges});
  }
  print_table(rows);
  return exit_ok;
}

} // namespace godwit::cli
