#pragma once

#include "actors/cache/block_identity.hpp"
#include "kernels/memory/page_pool.hpp"
#include "kernels/memory/sequence.hpp"
#include "messages/ids.hpp"
#include "messages/result.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>

namespace godwit {

struct approximate_cache_options {
  std::uint64_t pages = 0;  ///< that it may hold references of
  std::size_t entries = 64; ///< prefixes
};

/// Prefixes that a lossy profile has changed: sequences whose heads keep different positions, by profile,
/// tenant and text. They are no blocks and depend on where they were cut, so that each is kept whole and
/// found only as the state after exactly its tokens. The profile is part of every name, so that nothing in
/// here is what an exact look-up asks for, and a look-up under one profile never finds another one's. The
/// least recently used goes first. Not thread-safe; the pool is.
class approximate_cache {
 public:
  /// @param hasher of a scope with a profile
  approximate_cache(
    std::shared_ptr<page_pool> pool, const block_hasher& hasher, approximate_cache_options options);

  /// Keeps a state by sharing its pages: `of` may go on and be cut further. In place of an older one after
  /// the same tokens.
  /// @param tokens all of the sequence's, in whole blocks, so that a look-up meets them
  /// @returns `invalid_argument` if they are not, `resource_exhausted` if the state alone exceeds the budget
  result<void> insert(std::string_view tenant, std::span<const token_id> tokens, const sequence& of);

  /// The state after the longest known prefix of `tokens`.
  std::optional<sequence> find(std::string_view tenant, std::span<const token_id> tokens);

  /// Gives up states until so many pages have come free in the pool. @returns how many have
  std::uint64_t evict(std::uint64_t pages);

  std::size_t size() const { return states_.size(); }
  /// References of pages that it holds; states that share pages count them twice.
  std::uint64_t pages() const { return pages_; }

 private:
  struct state {
    block_identity name;
    sequence kept;
    std::uint64_t pages;
  };
  using states = std::list<state>;

  void forget(states::iterator which);

  std::shared_ptr<page_pool> pool_;
  block_hasher hasher_;
  approximate_cache_options options_;
  states states_; ///< the least recently used last
  std::unordered_map<block_identity, states::iterator> by_name_;
  std::uint64_t pages_ = 0;
};

} // namespace godwit
