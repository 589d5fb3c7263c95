#pragma once

#include <atomic>
#include <cstdint>

namespace godwit {

/// Tokens after which a token costs twice what the first one does: it reads all those before it.
inline constexpr std::uint32_t work_doubles_at = 4096;

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
  /// Time of prompts in steps, and their tokens in units of a text's first one.
  number prompt_nanoseconds{0};
  number prompt_work{0};

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

  // Written by the cache, of its lower tiers. Hits and misses are blocks that look-ups wanted behind what the
  // device had.
  number host_blocks{0}; ///< now
  number host_bytes{0};
  number host_hits{0};
  number host_misses{0};
  number host_evicted{0};
  number disk_blocks{0}; ///< now
  number disk_bytes{0};
  number disk_hits{0};
  number disk_misses{0};
  number disk_evicted{0};
  number disk_damaged{0};
  number disk_failures{0};
  number disk_degraded{0};       ///< 1 while the cold store refuses writes
  number offloaded_blocks{0};    ///< copied to the host
  number stored_blocks{0};       ///< given to the cold store
  number offload_dropped{0};     ///< blocks that found no place on their way down
  number offload_waiting{0};     ///< blocks on their way down now
  number swapped_blocks{0};      ///< of preempted sequences, copied to the host
  number onboard_loads{0};       ///< look-ups for which blocks were brought
  number onboard_overlapped{0};  ///< of these, with a part that was computed meanwhile
  number onboard_nanoseconds{0}; ///< from the look-up to the last block
  number onboard_staged{0};      ///< blocks of the pool that are being filled now
  number onboard_declined{0};    ///< blocks that were there, but cheaper to compute
  number onboard_forgone{0};     ///< loads that nobody waited for in the end

  // Written by prefill.
  number queued{0};        ///< prompts that wait now
  number prompts{0};       ///< prompts that are being computed now
  number cached_tokens{0}; ///< prompt tokens that were not computed, of requests that got their first token
  number cached_host_tokens{0}; ///< of these, from host memory
  number cached_disk_tokens{0}; ///< and from the cold tier

  // Written by decode.
  number streams{0};         ///< accepted and not ended
  number running{0};         ///< of these, with a row in the next step
  number released_tokens{0}; ///< sent to consumers
};

} // namespace godwit
