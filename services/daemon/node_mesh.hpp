#pragma once

#include "actors/model_card.hpp"
#include "messages/result.hpp"
#include "services/config/config.hpp"
#include "services/config/roles.hpp"
#include "services/mesh/mesh.hpp"
#include "services/metrics/metrics.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace godwit {

/// What a node's settings say of its mesh: keys and the list of nodes are read from their files.
/// @pre settings.in_mesh() and roles_of() has no objection
/// @param report see open_registry()
/// @returns the files' errors, `invalid_argument` if the keys are another node's, and as open_registry()
result<mesh_options> mesh_options_of(
  const config& settings, const node_roles& roles, const model_card& card, const std::string& version,
  std::function<void(const std::string&)> report = [](const std::string&) {});

/// A role that a node needs, leaves to others, and the name under which they offer it.
struct needed_role {
  std::string role;
  std::string offer;
};

/// What others have to have for a node of these roles to work. That a router needs workers it says itself.
std::vector<needed_role> needed_of(const node_roles& roles);

/// The figures of a node's links, peers and roles as its metrics.
/// @param source may return nothing while there is no mesh
void watch_mesh(metrics& figures, std::function<std::shared_ptr<const mesh>()> source);

} // namespace godwit
