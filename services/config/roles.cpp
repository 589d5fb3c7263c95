#include "services/config/roles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace godwit {

namespace {

constexpr std::array<std::string_view, 3> worker_parts{"prefill", "decode", "cache"};

bool names_role(const config& settings, std::string_view role) {
  const auto& roles = settings.roles;
  return std::any_of(
    roles.begin(), roles.end(), [&](const std::string& one) { return one == role || one == "all"; });
}

/// Pages do not move between nodes yet, so that who fills them, reads them and finds them is one.
result<bool> worker_of(const config& settings) {
  std::vector<std::string_view> missing;
  for (const auto part : worker_parts)
    if (!names_role(settings, part))
      missing.push_back(part);
  if (missing.empty() || missing.size() == worker_parts.size())
    return missing.empty();
  return fail(errc::invalid_argument,
    fmt::format(
      "roles: prefill, decode and cache share the pages of one device and have to stand together on "
      "a node; {} {} missing",
      fmt::join(missing, " and "), missing.size() == 1 ? "is" : "are"),
    "roles");
}

result<void> check_mesh(const config& settings) {
  const auto wrong = [](std::string param, std::string why) {
    return fail(errc::invalid_argument, param + " " + std::move(why), param);
  };
  if (settings.mesh_nodes.empty()) {
    constexpr auto alone = "is set, but mesh_nodes, which names the nodes of the mesh, is not";
    if (!settings.mesh_key.empty())
      return wrong("mesh_key", alone);
    if (settings.mesh_listen)
      return wrong("mesh_listen", alone);
    if (settings.mesh_plain)
      return wrong("mesh_plain", alone);
    return {};
  }
  if (settings.mesh_plain && !settings.mesh_key.empty())
    return wrong(
      "mesh_plain", "is for a mesh without keys on one machine, and mesh_key is set: take one of them");
  if (!settings.mesh_plain && settings.mesh_key.empty())
    return wrong("mesh_key", "is missing: it names the node's secret file, as `godwit keys new` makes it");
  if (settings.mesh_listen && (settings.mesh_listen->port == 0 || settings.mesh_listen->port > 65533))
    return wrong("mesh_listen", "needs a port from 1 to 65533: three ports are used from there");
  return {};
}

} // namespace

std::vector<std::string> node_roles::names() const {
  std::vector<std::string> out;
  const auto add = [&](bool has, std::string_view name) {
    if (has)
      out.emplace_back(name);
  };
  add(gateway, "gateway");
  add(session, "session");
  add(tokenizer, "tokenizer");
  add(router, "router");
  for (const auto part : worker_parts)
    add(worker, part);
  return out;
}

result<node_roles> roles_of(const config& settings) {
  if (const auto checked = check_mesh(settings); !checked)
    return fail(checked);
  const auto worker = worker_of(settings);
  if (!worker)
    return fail(worker);
  const node_roles out{.gateway = names_role(settings, "gateway"),
    .session = names_role(settings, "session"),
    .tokenizer = names_role(settings, "tokenizer"),
    .router = names_role(settings, "router"),
    .worker = *worker};
  if (!settings.mesh_nodes.empty() || out.all())
    return out;
  std::vector<std::string_view> missing;
  if (!out.gateway)
    missing.emplace_back("gateway");
  if (!out.session)
    missing.emplace_back("session");
  if (!out.tokenizer)
    missing.emplace_back("tokenizer");
  if (!out.router)
    missing.emplace_back("router");
  if (!out.worker)
    missing.insert(missing.end(), worker_parts.begin(), worker_parts.end());
  return fail(errc::invalid_argument,
    fmt::format("roles: nobody has {}: without mesh_nodes this node is alone and needs all roles",
      fmt::join(missing, ", ")),
    "roles");
}

} // namespace godwit
