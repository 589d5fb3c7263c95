#include "actors/directory/live_sessions.hpp"

namespace godwit {

void live_sessions::used(const session_id& session, std::int64_t now) {
  const auto [place, fresh] = used_.try_emplace(session, now);
  if (!fresh) {
    order_.erase({place->second, session});
    place->second = now;
  }
  order_.emplace(now, session);
}

void live_sessions::remove(const session_id& session) {
  const auto place = used_.find(session);
  if (place == used_.end())
    return;
  order_.erase({place->second, session});
  used_.erase(place);
}

std::vector<session_id> live_sessions::unused(std::int64_t now, std::size_t most) const {
  std::vector<session_id> found;
  for (const auto& [last, session] : order_) {
    const bool too_many = order_.size() - found.size() > idle_;
    if (found.size() >= most || (!too_many && now - last < idle_after_))
      break;
    found.push_back(session);
  }
  return found;
}

} // namespace godwit
