#include "services/gateway/live_actors.hpp"

#include <utility>

namespace godwit {

bool live_actors::join(caf::actor_id actor, ending end) {
  const std::lock_guard lock(mutex_);
  if (!ended_)
    members_.emplace(actor, std::move(end));
  return !ended_;
}

void live_actors::leave(caf::actor_id actor) {
  const std::lock_guard lock(mutex_);
  members_.erase(actor);
}

void live_actors::end_all() {
  std::unordered_map<caf::actor_id, ending> members;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    std::swap(members, members_);
  }
  for (const auto& [actor, end] : members)
    end();
}

} // namespace godwit
