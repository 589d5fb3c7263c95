#pragma once

#include "actors/cache/block_identity.hpp"
#include "kernels/memory/page_pool.hpp"
#include "messages/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace godwit {

/// Which full blocks of which tokens are in the page pool. Holds one reference of each block it knows, so
/// that blocks outlive their sequences; a block that nobody else holds can be given up. Gives up the least
/// recently used first, and a block never before the blocks that follow it. Not thread-safe; the pool is.
class prefix_cache {
 public:
  /// @param budget blocks that it may hold
  prefix_cache(std::shared_ptr<page_pool> pool, block_hasher hasher, std::uint32_t budget);
  ~prefix_cache();
  prefix_cache(const prefix_cache&) = delete;
  prefix_cache& operator=(const prefix_cache&) = delete;

  /// The blocks of the longest known prefix of `tokens`, with a reference of each for the caller.
  std::vector<block_id> find(std::string_view tenant, std::span<const token_id> tokens);

  /// Learns the blocks of a prefix, one for each `page_tokens` tokens, and takes over a reference of each.
  /// Where it knows equal blocks already, it keeps those. Stops where the budget is used up by blocks in use.
  void insert(std::string_view tenant, std::span<const token_id> tokens, std::span<const block_id> blocks);

  /// Gives up blocks that nobody else holds. @returns how many
  std::uint32_t evict(std::uint32_t blocks);

  std::size_t size() const { return index_.size(); }
  std::uint64_t evictions() const { return evictions_; }

 private:
  using slot = std::uint32_t;
  static constexpr slot none = ~slot{0};

  struct entry {
    block_identity identity;
    block_id block = 0;
    slot parent = none;
    std::uint32_t children = 0;
    slot older = none; ///< neighbours in the order of use
    slot newer = none;
  };

  bool evict_beside(slot last);
  /// Marks a chain as used just now, its end first, so that parents stay newer than their children.
  void touch(slot last);
  void link(slot which);
  void unlink(slot which);
  slot add(const block_identity& identity, block_id block, slot parent);
  void drop(slot which);

  std::shared_ptr<page_pool> pool_;
  block_hasher hasher_;
  std::uint32_t budget_;
  std::unordered_map<block_identity, slot> index_;
  std::vector<entry> entries_;
  std::vector<slot> unused_; ///< slots without an entry
  slot oldest_ = none;
  slot newest_ = none;
  std::uint64_t evictions_ = 0;
};

} // namespace godwit
