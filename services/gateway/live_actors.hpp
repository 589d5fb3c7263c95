#pragma once

#include <caf/actor_addr.hpp>
#include <caf/fwd.hpp>

#include <functional>
#include <mutex>
#include <unordered_map>

namespace godwit {

/// The actors of calls that are under way, so that none outlives the gateway and holds the system up. Any
/// thread may call.
class live_actors {
 public:
  /// Tells an actor to end.
  using ending = std::function<void()>;

  /// @returns false if all have been ended already: then the new one has to end by itself
  bool join(caf::actor_id actor, ending end);
  void leave(caf::actor_id actor);
  /// Ends all there are and all that come.
  void end_all();

 private:
  std::mutex mutex_;
  std::unordered_map<caf::actor_id, ending> members_;
  bool ended_ = false;
};

} // namespace godwit
