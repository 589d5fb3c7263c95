#pragma once

#include <atomic>
#include <cstdint>

namespace godwit {

/// What a node counts of prompts that it has computed elsewhere, or computes for others. Any thread reads.
struct handover_counters {
  using number = std::atomic<std::uint64_t>;

  // Of a node that has prompts computed elsewhere.
  number orders{0};               ///< prompts that were ordered
  number waiting{0};              ///< that are ordered, or whose blocks are on their way, now
  number short_prompts{0};        ///< of which too little was to be computed for an order
  number brought_blocks{0};       ///< that came, checked, and were used
  number brought_bytes{0};        ///< of them
  number brought_prompts{0};      ///< of which all blocks came
  number transfer_nanoseconds{0}; ///< of these, from the first question to the last block
  // Prompts that were computed here after all, in full or from the last good block on, by reason.
  number refused{0};        ///< the other node was not there, or did not want it
  number lost{0};           ///< it was lost, or had nothing any more
  number late{0};           ///< it took too long
  number damaged_blocks{0}; ///< blocks that did not check
  number no_room{0};        ///< times that the device had no room for the blocks

  // Of a node that computes prompts for others.
  number taken{0};        ///< orders
  number turned_away{0};  ///< orders that were refused
  number open{0};         ///< orders that are computed or kept now
  number kept_blocks{0};  ///< blocks that are kept for others now
  number given_blocks{0}; ///< blocks that were sent
  number given_bytes{0};
  number expired{0};  ///< leases that ended by their time
  number released{0}; ///< orders that whoever placed them has let go, or died with
};

} // namespace godwit
