#pragma once

#include <cstdint>

namespace godwit {

/// Who goes first when tokens or pages are short: the higher priority, then the older one.
struct rank {
  std::int32_t priority = 0;
  std::uint64_t arrival = 0; ///< counts requests of a worker; a request that has to start again keeps its own

  /// True if this one goes before the other.
  bool before(const rank& other) const {
    return priority != other.priority ? priority > other.priority : arrival < other.arrival;
  }

  bool operator==(const rank&) const = default;
};

} // namespace godwit
