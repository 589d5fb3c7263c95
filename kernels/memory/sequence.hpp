#pragma once

#include "kernels/memory/page_pool.hpp"
#include "messages/ids.hpp"
#include "messages/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace godwit {

/// The KV of one sequence: a list of pages for each layer and KV head, shared with other sequences by
/// reference count. Each head may keep positions of its own: such a sequence is *ragged*, and holds single
/// pages in place of blocks. Moves, but is not copied by accident: `fork` says what it does. Not thread-safe;
/// the pool is.
class sequence {
 public:
  explicit sequence(page_pool& pool);
  ~sequence();
  sequence(sequence&&) noexcept;
  sequence& operator=(sequence&&) noexcept;

  /// Adopts full blocks that a cache found, behind what is there; takes over one reference of each. What is
  /// there must be full blocks, with nothing reserved behind them.
  void adopt(std::span<const block_id> blocks);

  /// The pool that holds its pages.
  page_pool& pool() const { return *pool_; }

  /// The next position: how many tokens were computed, whatever is kept of them.
  position_t length() const { return length_; }

  /// Makes positions [length, length + tokens) writable: allocates blocks, and copies the last partial one if
  /// it is shared. Changes nothing if it fails. @returns `resource_exhausted`
  result<void> reserve(std::uint32_t tokens);
  /// Blocks that `reserve(tokens)` would take from the pool.
  std::uint32_t blocks_needed(std::uint32_t tokens) const;

  /// Says that `tokens` more positions were written.
  void advance(std::uint32_t tokens);
  /// Cuts back to `length` and releases what is not needed, blocks that were only reserved too.
  void truncate(position_t length);
  /// A sequence with the same contents that shares all written pages; writing to either copies at most the
  /// last block.
  sequence fork() const;

  /// Keeps only some positions of one layer and KV head: moves them together within their pages and gives
  /// back the pages that are not needed any more. Unless that is all of them, the sequence is ragged from now
  /// on, and what was reserved is given back; its next position stays the same. Changes nothing if it fails.
  /// @param wanted ascending, each of them kept so far; may be empty
  /// @returns pages that are free now; `invalid_argument` naming a position, or `resource_exhausted` if a
  /// page that changes is shared and there is none to take its place
  result<std::uint32_t> keep(std::uint32_t layer, std::uint32_t head, std::span<const position_t> wanted);
  /// True if its heads may differ. It is an approximation then: no exact cache may know it.
  bool ragged() const { return !positions_.empty(); }
  /// True positions of what a ragged sequence keeps in that list, ascending.
  std::span<const position_t> positions(std::uint32_t layer, std::uint32_t head) const;
  /// How many positions before `position` that list keeps, those from length() on counted as if they were
  /// written: where what stands at `position` or behind it begins. `position` itself unless it is ragged.
  std::uint32_t slot_from(std::uint32_t layer, std::uint32_t head, position_t position) const;
  /// Of the list that keeps most.
  std::uint32_t most_kept() const;
  /// False if it gives nothing back when it ends.
  bool holds_pages() const;

  /// Pages of one layer and KV head in ascending order of positions, those reserved for the next ones too.
  std::span<const page_id> pages(std::uint32_t layer, std::uint32_t head) const;
  /// Positions kept in that list; all of its pages but the last are full.
  std::uint32_t kept(std::uint32_t layer, std::uint32_t head) const;
  /// Full blocks and the last partial one, in order; what a cache stores and finds. None of a ragged
  /// sequence.
  std::span<const block_id> blocks() const {
    return std::span(blocks_).first(ragged() ? 0 : blocks_for(length_));
  }

 private:
  /// Blocks that hold the first `length` positions.
  static std::size_t blocks_for(std::uint64_t length) { return (length + page_tokens - 1) / page_tokens; }
  /// Blocks that `tokens` more positions take beyond those at hand.
  std::size_t blocks_missing(std::uint32_t tokens) const;
  /// True if the next position stands in a block that somebody else holds too.
  bool shares_tail() const;
  void append(block_id block);
  /// Copies what is written of the last block into `fresh`, which takes its place.
  void replace_tail(block_id fresh);
  /// Releases the blocks from the index `count` on.
  void shrink(std::size_t count);

  std::size_t list_of(std::uint32_t layer, std::uint32_t head) const;
  void release_all();

  // The same for a ragged sequence.
  static constexpr page_id no_page = ~page_id{0};
  result<std::vector<std::uint32_t>> slots_of(std::size_t list, std::span<const position_t> wanted) const;
  result<std::vector<page_id>> replacements(std::size_t list, std::span<const std::uint32_t> slots) const;
  void make_ragged();
  std::uint32_t ragged_slot_from(std::size_t list, position_t position) const;
  bool tail_is_shared(std::size_t list) const;
  std::uint32_t ragged_blocks_needed(std::uint32_t tokens) const;
  result<void> reserve_ragged(std::uint32_t tokens);
  void advance_ragged(std::uint32_t tokens);
  void truncate_ragged(position_t length);
  void fork_ragged(sequence& twin) const;

  page_pool* pool_;
  position_t length_ = 0;
  std::vector<block_id> blocks_; ///< those reserved for the next positions too
  /// [layer * kv_heads + head][index of page]
  std::vector<std::vector<page_id>> pages_;
  /// The same for what is kept of a ragged sequence; empty for all others.
  std::vector<std::vector<position_t>> positions_;
};

} // namespace godwit
