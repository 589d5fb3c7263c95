#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace godwit {

/// The time to wait before the next try: doubles from failure to failure, up to a limit.
class retry_pause {
 public:
  retry_pause(std::chrono::milliseconds first, std::chrono::milliseconds longest)
    : first_(first.count()), longest_(longest.count()), next_(first.count()) {}

  /// A try failed at the time `now` (milliseconds).
  void failed(std::int64_t now) {
    until_ = now + next_;
    next_ = std::min(2 * next_, longest_);
  }
  void succeeded() {
    until_ = 0;
    next_ = first_;
  }
  /// True while the next try has to wait.
  bool active(std::int64_t now) const { return now < until_; }
  std::int64_t until() const { return until_; }

 private:
  std::int64_t first_;
  std::int64_t longest_;
  std::int64_t next_;
  std::int64_t until_ = 0;
};

} // namespace godwit
