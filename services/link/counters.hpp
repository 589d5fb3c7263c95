#pragma once

#include <atomic>
#include <cstdint>

namespace godwit::link {

/// What a link has done, for metrics. Written by the link's thread, read by any.
struct link_counters {
  using count = std::atomic<std::uint64_t>;

  count letters_sent{0}; ///< of both lanes, as are the next three
  count letters_received{0};
  count bytes_sent{0};
  count bytes_received{0}; ///< beats and greetings too
  count bulk_sent{0};      ///< those of them that took the bulk lane
  count bulk_received{0};
  count bulk_bytes_sent{0};
  count bulk_bytes_received{0};
  count events_sent{0};
  count events_received{0};
  count events_missed{0}; ///< this node was too slow for a publisher, or away

  count malformed{0}; ///< bytes that are no frame, or no letter of the type they say
  count oversized{0}; ///< of those: frames over a limit; ZeroMQ ends connections that send much larger ones
  count stale{0};     ///< of an earlier conversation, or of none
  count unknown_keys{0};  ///< connections with a key that is not on the list
  count connections{0};   ///< that others have opened here
  count disconnects{0};   ///< of those: they have ended, also because they sent what ZeroMQ does not take
  count handshakes{0};    ///< of those; the others have a wrong key or protocol, or last a moment longer
  count refused{0};       ///< hellos that were turned away
  count key_conflicts{0}; ///< nodes that were named with a key which another node has
  /// Letters that nobody is told of: to a node that is not there, for which no place was, that waited for a
  /// node when it was lost; and streams that nothing here makes. What ZeroMQ had taken is not known.
  count dead_letters{0};
  count overflows{0}; ///< refused because a queue was full
  count expired{0};   ///< dropped because their deadline passed while they waited
  count peers_lost{0};
  count overloaded{0};    ///< of those: they took too little, and were told so
  count bulk_redials{0};  ///< bulk connections that died alone and were made anew
  count credit_broken{0}; ///< items without credit

  count queued_parcels{0}; ///< letters that wait for peers now
  count queued_bytes{0};
  count queued_bulk{0}; ///< the same in the bulk lane
  count queued_bulk_bytes{0};
  count queued_commands{0};  ///< that the link's thread found when it last looked
  count pending_requests{0}; ///< of this node, without an answer yet
  count serving_requests{0}; ///< of other nodes
  count streams{0};

  static void add(count& which, std::uint64_t more = 1) { which.fetch_add(more, std::memory_order_relaxed); }
  static void set(count& which, std::uint64_t value) { which.store(value, std::memory_order_relaxed); }
};

} // namespace godwit::link
