#include "services/daemon/node_registry.hpp"

#include "services/daemon/address_file.hpp"
#include "services/mesh/group_registry.hpp"
#include "services/mesh/postgres_registry.hpp"
#include "services/mesh/static_registry.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <utility>

namespace godwit {

namespace {

using opened = result<std::shared_ptr<registry>>;
using teller = std::function<void(const std::string&)>;

/// The failure, as that of a setting.
opened named(opened made, const std::string& setting) {
  if (!made)
    return fail(made.error().code, made.error().message, setting);
  return made;
}

/// How many other nodes a registry knows now.
std::size_t others_of(registry& nodes) {
  std::size_t count = 0;
  nodes.watch([&](const registry_change& change) { count += change.there ? 1 : 0; });
  nodes.watch([](const registry_change&) {});
  return count;
}

opened open_list(const config& settings, const node_roles& roles) {
  auto made =
    named(static_registry::load(
            {.file = settings.mesh_nodes, .self = node_name(settings.node), .plain = settings.mesh_plain}),
      "mesh_nodes");
  if (made && !roles.all() && others_of(**made) == 0)
    return fail(errc::invalid_argument,
      fmt::format(
        "{} lists no node but this one, which leaves roles to others", settings.mesh_nodes.string()),
      "mesh_nodes");
  return made;
}

opened open_table(const config& settings, teller report) {
  postgres_registry_options out;
  out.url = settings.mesh_registry_url;
  if (!settings.mesh_registry_url_file.empty()) {
    auto address = address_in(settings.mesh_registry_url_file, "mesh_registry_url_file");
    if (!address)
      return fail(address);
    out.url = std::move(*address);
  }
  out.self = node_name(settings.node);
  out.plain = settings.mesh_plain;
  out.report = std::move(report);
  return named(postgres_registry::open(std::move(out)), "mesh_registry_url");
}

opened open_group(const config& settings, teller report) {
  group_registry_options out;
  out.file = settings.mesh_group_file;
  out.keys = settings.mesh_keys;
  if (settings.mesh_listen) {
    out.bind = settings.mesh_listen->host;
    out.port = settings.mesh_listen->port;
  }
  out.environment = [](const std::string& name) -> std::optional<std::string> {
    const auto* const value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  out.report = [report = std::move(report)](const error& why) { report(why.message); };
  return named(group_registry::open(std::move(out)), "mesh_registry");
}

} // namespace

result<std::shared_ptr<registry>> open_registry(
  const config& settings, const node_roles& roles, std::function<void(const std::string&)> report) {
  switch (settings.mesh_registry) {
  case registry_kind::list:
    return open_list(settings, roles);
  case registry_kind::postgres:
    return open_table(settings, std::move(report));
  case registry_kind::group:
    return open_group(settings, std::move(report));
  }
  return fail(errc::internal, "there is no such registry");
}

} // namespace godwit
