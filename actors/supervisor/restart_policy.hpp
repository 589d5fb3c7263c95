#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace godwit {

/// When a child that has ended is started again.
enum class restart_when {
  always,   ///< however it ended
  abnormal, ///< only if it did not end of itself
  never,
};

struct restart_limits {
  std::size_t restarts = 5;                   ///< in `window`; one more is too many
  std::chrono::milliseconds window{60'000};   ///< longer than so many starts of the child take
  std::chrono::milliseconds first_pause{100}; ///< before a restart; doubles with each one in the window
  std::chrono::milliseconds longest_pause{5'000};
};

/// What to do about the end of a child.
struct restart_verdict {
  enum class action {
    leave,    ///< it stays ended
    restart,  ///< after `pause`, it and those that depend on it
    escalate, ///< it fails too often
  };
  action what = action::leave;
  std::chrono::milliseconds pause{0};

  bool operator==(const restart_verdict&) const = default;
};

/// Decides about one child's restarts.
class restart_policy {
 public:
  restart_policy(restart_when when, restart_limits limits) : when_(when), limits_(limits) {}

  /// The child has ended at the steady time `now` (milliseconds).
  restart_verdict ended(std::int64_t now, bool normally);

  /// Restarts since the start.
  std::uint64_t restarts() const { return restarts_; }

 private:
  restart_when when_;
  restart_limits limits_;
  std::deque<std::int64_t> recent_; ///< times of restarts within the window
  std::uint64_t restarts_ = 0;
};

} // namespace godwit
