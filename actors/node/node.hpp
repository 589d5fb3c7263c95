#pragma once

#include "messages/catalogue.hpp"
#include "messages/ids.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace caf {
class actor_system;
}

namespace godwit {

struct node_config {
  node_name name;
  std::string incarnation;
  std::vector<std::string> roles;
  std::string model;
  std::int64_t started_at = 0; ///< seconds since 1970
  /// For a member's status; one that does not answer in time is shown as such and the node is not ready.
  std::chrono::milliseconds status_timeout{2'000};
  /// For a member to drain; more than any member takes for itself.
  std::chrono::milliseconds drain_timeout{60'000};
};

/// Starts the actor that stands for this process. Its members come by `join`, those that others depend on
/// first. Its status is `ready` when all members are; the reason names those that are not.
node_actor spawn_node(caf::actor_system& system, node_config config);

} // namespace godwit
