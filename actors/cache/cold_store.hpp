#pragma once

#include "actors/cache/block_identity.hpp"
#include "messages/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace godwit {

/// One full block on its way to the cold tier.
struct cold_block {
  block_identity identity;
  block_identity parent;   ///< of the block before it; the tenant's root for the first one
  std::uint32_t depth = 0; ///< blocks before it
  std::uint8_t hits = 0;   ///< how often it was asked for while it was warm
  std::string_view tenant;
  std::span<const std::byte> pages; ///< kv_shape::block_bytes() bytes, in the order of page_pool::page()
};

struct cold_stats {
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0; ///< of values, as they count against the limit
  std::uint64_t limit_bytes = 0;
  std::uint64_t hits = 0;   ///< blocks that were read
  std::uint64_t misses = 0; ///< blocks that were asked for and were gone
  std::uint64_t written = 0;
  std::uint64_t evicted = 0;
  std::uint64_t damaged = 0;  ///< records that did not check; deleted
  std::uint64_t failures = 0; ///< reads and writes that the disk refused
  bool refusing = false;      ///< writes are refused at once
  bool degraded = false;      ///< the same, or the disk has not taken as much again since it refused
};

/// The tier on disk. It may lose any block at any time, and never gives back another one's bytes.
/// Thread-safe: an eviction or a write may run while blocks are read.
class cold_store {
 public:
  virtual ~cold_store() = default;

  /// How many of a chain's blocks, from the first on, it holds. From memory only: costs no read.
  virtual std::size_t known(std::span<const block_identity> chain) const = 0;
  /// Reads blocks from the first on, each into block_bytes() bytes, until one is missing or does not check.
  /// @returns how many were read and are good
  virtual std::size_t read(
    std::span<const block_identity> chain, std::span<const std::span<std::byte>> into) = 0;
  /// Writes blocks in one commit, parents before children, and evicts what has to go for them. Those that are
  /// there already cost nothing. They survive the death of the process when it returns.
  /// @returns `io`, `resource_exhausted` if the disk refuses; nothing is half written
  virtual result<void> write(std::span<const cold_block> blocks) = 0;
  virtual cold_stats stats() const = 0;
};

} // namespace godwit
