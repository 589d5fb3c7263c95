#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace godwit {

/// What bounds one session: every queue and every wait.
struct session_limits {
  std::size_t waiting_turns = 64;     ///< accepted messages behind the running turn; more are `overloaded`
  std::size_t waiting_commands = 128; ///< calls that wait for the journal; more are `overloaded`
  std::size_t open_calls = 1'024;  ///< calls that were not answered yet, of all kinds; more are `overloaded`
  std::size_t subscriptions = 64;  ///< streams that are open at once; more are `overloaded`
  std::uint32_t token_credit = 64; ///< tokens that the router may send ahead of their commit
  std::size_t tokens_per_record = 64;   ///< in one `released` record: what came while the last was written
  std::size_t read_page = 256;          ///< records read at once from the journal
  std::size_t fork_records = 1'000'000; ///< the longest journal that can be forked

  /// Tries at a turn, over restarts too, without a newly committed token between them; then it has failed.
  unsigned attempts = 3;
  /// A try that commits no token for so long is given up; so is waiting for a worker that is free.
  std::chrono::milliseconds stall{120'000};
  /// For an answer of the tokenizer, or of the router.
  std::chrono::milliseconds request_timeout{10'000};
  /// For the cache's word on what it has of the session; without it the rest is told.
  std::chrono::milliseconds probe_timeout{1'000};
  /// For the move of a session's KV to the lowest tier.
  std::chrono::milliseconds suspend_timeout{60'000};
  /// Pause before the next try at something that failed; doubles each time up to the second value.
  std::chrono::milliseconds first_pause{100};
  std::chrono::milliseconds longest_pause{5'000};
};

} // namespace godwit
