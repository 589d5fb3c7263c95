#pragma once

#include <atomic>
#include <cstdint>

namespace godwit {

/// What an engine counts since its start, and how it is now. Any thread reads.
struct engine_counters {
  using number = std::atomic<std::uint64_t>;

  // Written by the device.
  number steps{0};
  number prefilled_tokens{0}; ///< prompt tokens computed, again after a preemption too
  number decoded_tokens{0};   ///< tokens sampled
  number preemptions{0};
  number starved_rows{0};
  number step_nanoseconds{0};  ///< in all steps
  number pause_nanoseconds{0}; ///< between steps of which one followed the other without idleness
  number pauses{0};
  number last_step_nanoseconds{0};
  number sequences{0}; ///< open now

  // Written by the device and the cache.
  number free_blocks{0};

  // Written by the cache.
  number cached_blocks{0}; ///< in the index now
  number cache_lookups{0};
  number cache_hits{0};   ///< look-ups that found something
  number found_tokens{0}; ///< by look-ups
  number evicted_blocks{0};
  number pinned_blocks{0}; ///< now
  number index_bytes{0};   ///< memory of the index, beside the pages

  // Written by prefill.
  number queued{0};        ///< prompts that wait now
  number prompts{0};       ///< prompts that are being computed now
  number cached_tokens{0}; ///< prompt tokens that were not computed, of requests that got their first token

  // Written by decode.
  number streams{0};         ///< accepted and not ended
  number running{0};         ///< of these, with a row in the next step
  number released_tokens{0}; ///< sent to consumers
};

} // namespace godwit
