#pragma once

#include "messages/result.hpp"
#include "services/config/config.hpp"
#include "services/config/roles.hpp"
#include "services/mesh/registry.hpp"

#include <functional>
#include <memory>
#include <string>

namespace godwit {

/// What says which other nodes there are, by the node's settings.
/// @pre settings.in_mesh(), and roles_of() has no objection
/// @param report what the operator should know of it later; called on the registry's thread
/// @returns the errors of files, of the environment and of addresses with `param` naming the setting;
/// `invalid_argument` if a list holds no other node while this one leaves a role to others
result<std::shared_ptr<registry>> open_registry(
  const config& settings, const node_roles& roles, std::function<void(const std::string&)> report);

} // namespace godwit
