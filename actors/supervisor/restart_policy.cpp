#include "actors/supervisor/restart_policy.hpp"

#include <algorithm>

namespace godwit {

restart_verdict restart_policy::ended(std::int64_t now, bool normally) {
  if (when_ == restart_when::never || (when_ == restart_when::abnormal && normally))
    return {restart_verdict::action::leave, std::chrono::milliseconds(0)};
  while (!recent_.empty() && now - recent_.front() >= limits_.window.count())
    recent_.pop_front();
  if (recent_.size() >= limits_.restarts)
    return {restart_verdict::action::escalate, std::chrono::milliseconds(0)};
  auto pause = limits_.first_pause;
  for (std::size_t i = 0; i < recent_.size() && pause < limits_.longest_pause; ++i)
    pause *= 2;
  recent_.push_back(now);
  ++restarts_;
  return {restart_verdict::action::restart, std::min(pause, limits_.longest_pause)};
}

} // namespace godwit
