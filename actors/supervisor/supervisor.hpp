#pragma once

#include "actors/session/time_source.hpp"
#include "actors/supervisor/restart_policy.hpp"
#include "messages/catalogue.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace caf {
class actor_system;
}

namespace godwit {

/// One actor to keep running.
struct supervised {
  std::string name;
  /// Makes the actor; called on the supervisor's thread, again for each restart. It takes the handles of the
  /// actors that it uses from where their `start` left them. An exception counts as a failure of the child.
  std::function<common_actor(caf::actor_system&)> start;
  restart_when when = restart_when::always;
  /// Children before it whose handles it holds: it is started when they are there, and ends with each of
  /// them, since the next one is another actor. A child that reaches others in a way that outlives them (see
  /// part_handle) does not name them, and goes on.
  std::vector<std::string> uses = {};
  restart_limits limits = {};
};

struct supervisor_config {
  /// In the order in which they are started.
  std::vector<supervised> children;
  node_actor node; ///< the children join it, and it is told when the supervisor gives up
  std::shared_ptr<const time_source> time;
  /// For a child to drain; more than any child takes for itself.
  std::chrono::milliseconds drain_timeout{60'000};
};

/// Starts the children, in order, before it returns its first answer, and keeps them running: whatever ends
/// is started again with all that use it, and nothing else. When one cannot be kept running it ends with
/// those, nothing is started any more, and the rest goes on, so that it can be drained. Draining drains the
/// children from the last to the first; stopping stops them so.
supervisor_actor spawn_supervisor(caf::actor_system& system, supervisor_config config);

} // namespace godwit
