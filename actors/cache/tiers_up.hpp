#pragma once

#include "actors/cache/tiered_cache.hpp"

#include <atomic>

namespace godwit {

/// Blocks on their way to the device. The lane writes what it has done; all else is fixed before it begins.
struct tiered_cache::load {
  std::pair<request_id, bool> key;
  std::uint32_t first = 0; ///< blocks before these
  block_identity parent;   ///< the block before these; zero: they are the first ones
  block_names names;
  std::vector<block_id> blocks;         ///< of the pool, to be filled
  std::vector<host_tier::place> places; ///< of the first ones, held
  std::function<void(tier_load)> then;
  std::chrono::steady_clock::time_point since;
  double expected = 0; ///< seconds

  std::atomic<bool> forgone{false};
  std::uint32_t host_done = 0;
  std::uint32_t disk_done = 0;
  double host_seconds = 0;
  double disk_seconds = 0;
};

} // namespace godwit
