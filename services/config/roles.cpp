#include "services/config/roles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace godwit {

namespace {

bool names_role(const config& settings, std::string_view role) {
  const auto& roles = settings.roles;
  return std::any_of(
    roles.begin(), roles.end(), [&](const std::string& one) { return one == role || one == "all"; });
}

/// Which part of a worker a node is. Streams and the cache that finds their text's blocks share the pages of
/// one device; prompts may be computed on another one.
result<void> check_worker(const config& settings) {
  const bool prefill = names_role(settings, "prefill");
  const bool decode = names_role(settings, "decode");
  const bool cache = names_role(settings, "cache");
  const auto refuse = [](const char* why) {
    return fail(errc::invalid_argument,
      fmt::format(
        "roles: {}; a worker is prefill,decode,cache, or decode,cache with prefill on other nodes", why),
      "roles");
  };
  if (decode && !cache)
    return refuse("decode needs the cache of its own device, and cache is missing");
  if (cache && !decode && prefill)
    return refuse("a node with prefill and without decode has a cache of its own: leave cache out");
  if (cache && !decode)
    return refuse("cache is that of a device on which streams run, and decode is missing");
  return {};
}

/// Settings that nothing would read.
result<void> check_handover(const config& settings) {
  const config defaults;
  const auto unused = [&](std::string param) {
    return fail(errc::invalid_argument,
      param + " is set, but neither mesh_nodes nor mesh_registry, which say to whom prompts could go", param);
  };
  if (settings.in_mesh())
    return {};
  if (settings.handover_min_tokens != defaults.handover_min_tokens)
    return unused("handover_min_tokens");
  if (settings.handover_deadline != defaults.handover_deadline)
    return unused("handover_deadline_s");
  return {};
}

tl::unexpected<error> wrong(const std::string& param, const std::string& why) {
  return fail(errc::invalid_argument, param + " " + why, param);
}

std::string name_of(registry_kind kind) {
  switch (kind) {
  case registry_kind::list:
    return "static";
  case registry_kind::postgres:
    return "postgres";
  case registry_kind::group:
    return "group";
  }
  return {};
}

/// Settings that belong to one kind of registry are a mistake beside another.
result<void> check_strangers(const config& settings) {
  const auto stranger = [&](bool set, registry_kind of, const std::string& param) -> result<void> {
    if (set && settings.mesh_registry != of)
      return wrong(
        param, "is for mesh_registry = " + name_of(of) + ", and that is " + name_of(settings.mesh_registry));
    return {};
  };
  const config defaults;
  for (const auto& each :
    {stranger(!settings.mesh_nodes.empty(), registry_kind::list, "mesh_nodes"),
      stranger(!settings.mesh_registry_url.empty(), registry_kind::postgres, "mesh_registry_url"),
      stranger(!settings.mesh_registry_url_file.empty(), registry_kind::postgres, "mesh_registry_url_file"),
      stranger(!settings.mesh_advertise.empty(), registry_kind::postgres, "mesh_advertise"),
      stranger(settings.mesh_group_file != defaults.mesh_group_file, registry_kind::group, "mesh_group_file"),
      stranger(!settings.mesh_keys.empty(), registry_kind::group, "mesh_keys")})
    if (!each)
      return each;
  return {};
}

bool is_every_address(const std::string& host) {
  return host == "0.0.0.0" || host == "::" || host == "*";
}

/// What each kind of registry cannot do without.
result<void> check_registry(const config& settings) {
  switch (settings.mesh_registry) {
  case registry_kind::list:
    return {};
  case registry_kind::postgres:
    if (settings.mesh_registry_url.empty() == settings.mesh_registry_url_file.empty())
      return wrong("mesh_registry_url",
        "or mesh_registry_url_file has to be set for mesh_registry = postgres, "
        "and only one of them");
    if (!settings.mesh_listen)
      return wrong("mesh_listen", "is missing: with mesh_registry = postgres each node says where it is");
    if (settings.mesh_advertise.empty() && is_every_address(settings.mesh_listen->host))
      return wrong("mesh_advertise",
        "is missing: mesh_listen is every address of this machine, and other nodes "
        "have to know one of them");
    return {};
  case registry_kind::group:
    if (settings.mesh_plain)
      return wrong("mesh_plain", "is for one machine, and the nodes of a group are on many: have keys");
    if (settings.mesh_keys.empty())
      return wrong(
        "mesh_keys", "is missing: it names the folder with NODE.public for each node of the group");
    return {};
  }
  return {};
}

result<void> check_mesh(const config& settings) {
  if (auto checked = check_strangers(settings); !checked)
    return checked;
  if (!settings.in_mesh()) {
    constexpr auto alone = "is set, but neither mesh_nodes nor mesh_registry, which say who is in the mesh";
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
  if (auto checked = check_registry(settings); !checked)
    return checked;
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
  add(prefill, "prefill");
  add(decode, "decode");
  add(decode, "cache");
  return out;
}

result<node_roles> roles_of(const config& settings) {
  if (const auto checked = check_mesh(settings); !checked)
    return fail(checked);
  if (const auto checked = check_worker(settings); !checked)
    return fail(checked);
  if (const auto checked = check_handover(settings); !checked)
    return fail(checked);
  const node_roles out{.gateway = names_role(settings, "gateway"),
    .session = names_role(settings, "session"),
    .tokenizer = names_role(settings, "tokenizer"),
    .router = names_role(settings, "router"),
    .prefill = names_role(settings, "prefill"),
    .decode = names_role(settings, "decode")};
  if (settings.in_mesh() || out.all())
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
  if (!out.prefill)
    missing.emplace_back("prefill");
  if (!out.decode)
    missing.insert(missing.end(), {"decode", "cache"});
  return fail(errc::invalid_argument,
    fmt::format("roles: nobody has {}: without a mesh (mesh_nodes, mesh_registry) this node is alone and "
                "needs all roles",
      fmt::join(missing, ", ")),
    "roles");
}

} // namespace godwit
