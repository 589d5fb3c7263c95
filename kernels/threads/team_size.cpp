#include "kernels/threads/team_size.hpp"

#include <algorithm>

namespace godwit {

void team_size::ran(nanoseconds wall, nanoseconds core, clock::time_point at) {
  if (most_ == 1)
    return;
  wall_ += wall;
  core_ += core;
  ++jobs_;
  const auto rate = now_ * static_cast<double>(core_.count()) / static_cast<double>(wall_.count());
  const bool hopeless = now_ != home_ && rate < 0.5 * home_rate_;
  if (wall_ < window || (jobs_ < window_jobs && !hopeless))
    return;
  wall_ = core_ = nanoseconds{0};
  jobs_ = 0;
  settle(rate, at);
}

void team_size::settle(double rate, clock::time_point at) {
  if (now_ != home_) {
    // A trial is over. A tenth better, or it would go back and forth.
    if (rate > 1.1 * home_rate_) {
      home_ = now_;
      home_rate_ = rate;
      pause_ = first_pause;
      divisor_ = 2;
      next_trial_ = at; // in the same direction, if it is still worth it
    } else {
      // Half may wait as long as all do, and a quarter for nobody.
      if (now_ < home_)
        divisor_ = now_ > 1 ? 2 * divisor_ : 2;
      now_ = home_;
      pause_ = std::min(2 * pause_, last_pause);
      next_trial_ = at + pause_;
    }
    return;
  }
  home_rate_ = rate;
  if (at < next_trial_)
    return;
  if (smaller_may_be_better(rate))
    now_ = std::max(1U, home_ / divisor_);
  else if (home_ < most_)
    now_ = std::min(most_, 2 * home_);
}

} // namespace godwit
