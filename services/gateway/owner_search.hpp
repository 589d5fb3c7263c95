#pragma once

#include "messages/error.hpp"
#include "messages/reasons.hpp"

#include <caf/actor_clock.hpp>

#include <algorithm>
#include <chrono>
#include <optional>

namespace godwit {

/// When a call looks for its session again. A session that has been taken over answers its former owner's
/// callers with `stale_epoch` and does nothing; the directory knows the new owner, perhaps after a moment. An
/// owner whose node was just lost is not reached at all, until another node has its sessions.
class owner_search {
 public:
  using time = caf::actor_clock::time_point;

  /// @param until the call's time is over
  explicit owner_search(time until) : until_(until) {}

  /// @param once what was asked may have been done, and must not be asked twice
  /// @returns how long to wait before the next look; nothing: the failure is the answer
  std::optional<std::chrono::milliseconds> next(const error& why, bool once, time now) {
    const bool moved =
      why.code == errc::stale_epoch || (why.code == errc::peer_lost && !once) || not_asked(why);
    // Until the new owner is there, others than it may answer.
    const bool waits = seen_ && !once && (why.code == errc::unavailable || why.code == errc::stale_sequence);
    if ((!moved && !waits) || now + pause_ > until_)
      return std::nullopt;
    seen_ = true;
    const auto pause = pause_;
    pause_ = std::min(2 * pause_, longest_pause);
    return pause;
  }

  /// Whether certainly nobody was asked, because the session is about to have another owner.
  static bool not_asked(const error& why) {
    return why.code == errc::unavailable
           && (why.reason == reasons::node_unreachable || why.reason == reasons::session_moves);
  }

 private:
  static constexpr std::chrono::milliseconds longest_pause{1'000};

  time until_;
  std::chrono::milliseconds pause_{50};
  bool seen_ = false; ///< another owner
};

} // namespace godwit
