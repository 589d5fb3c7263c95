#pragma once

#include <chrono>
#include <cstdint>

namespace godwit {

/// How many threads of a team should work. On a machine that is busy with other things the threads of a job
/// wait for whichever of them has no core, at every barrier; then fewer finish sooner, down to one that waits
/// for nobody. Measured, not guessed: a size is tried for a while, and kept if more work is done in a second.
/// Results do not depend on it.
///
/// Work is counted as time on a core: what one thread had, times the size.
class team_size {
 public:
  using clock = std::chrono::steady_clock;
  using nanoseconds = std::chrono::nanoseconds;

  explicit team_size(std::uint32_t most) : most_{most}, home_{most}, now_{most} {}

  /// Threads of the next job.
  std::uint32_t now() const { return now_; }

  /// A job of `now()` threads is done.
  /// @param wall how long it took
  /// @param core how long of that its first thread had a core
  void ran(nanoseconds wall, nanoseconds core, clock::time_point at);

 private:
  static constexpr nanoseconds window{20'000'000};
  static constexpr std::uint32_t window_jobs = 4;
  static constexpr clock::duration first_pause = std::chrono::milliseconds(250);
  static constexpr clock::duration last_pause = std::chrono::seconds(8);

  /// Work in a second that a smaller team could do at most makes it worth a trial.
  bool smaller_may_be_better(double rate) const { return home_ > 1 && rate < 0.75 * (home_ / 2); }
  void settle(double rate, clock::time_point at);

  std::uint32_t most_;
  std::uint32_t home_; ///< the best size known
  std::uint32_t now_;  ///< another one while it is tried
  double home_rate_ = 0;
  nanoseconds wall_{0};
  nanoseconds core_{0};
  std::uint32_t jobs_ = 0;
  std::uint32_t divisor_ = 2;           ///< of the size that is tried next when fewer threads may be better
  clock::duration pause_ = first_pause; ///< between trials; grows while they fail
  clock::time_point next_trial_{};
};

} // namespace godwit
