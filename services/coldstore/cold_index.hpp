#pragma once

#include "actors/cache/block_index.hpp"
#include "actors/cache/cold_store.hpp"
#include "services/coldstore/codec.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

namespace godwit {

/// What is on disk, in memory: which blocks, how large, and which go first. A change is planned, then written
/// by somebody else, then confirmed; until that a planned block is not known, and one that is to go is not
/// known any more. Not thread-safe.
///
/// What goes first is what block_index says. That weighs what a block costs to compute, and takes all blocks
/// as equally large; so does this, also for blocks of several models in one store: a block of a model with
/// larger pages costs more to compute by about the same factor, so that the order by value per byte is this
/// one.
class cold_index {
 public:
  /// One step of a change; steps are written in their order.
  struct step {
    enum class kind : std::uint8_t { put, drop };
    kind what = kind::put;
    block_identity identity;
    std::size_t block = 0; ///< for put: which of those that were planned
    std::uint32_t bytes = 0;
    std::uint32_t place = 0; ///< of its record
    double worth = 0;        ///< for put
  };

  /// What a note of a block should say of it by now.
  struct use {
    block_identity identity;
    std::uint8_t hits = 0;
    double worth = 0;
  };

  explicit cold_index(std::uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  std::uint64_t limit_bytes() const { return limit_bytes_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t blocks() const { return blocks_; }
  /// Grows with each block that is given up: while it stays, a known block is on disk.
  std::uint64_t given_up() const { return given_up_; }
  /// Memory that it has taken.
  std::size_t memory() const {
    return index_.bytes() + stored_.capacity() * sizeof(stored_[0])
           + planned_.capacity() * sizeof(planned_[0]);
  }

  bool has(const block_identity& identity) const;
  /// How many of a chain's blocks are there, from the first on.
  std::size_t known(std::span<const block_identity> chain) const;
  /// Places of the records of those.
  std::vector<std::uint32_t> places(std::span<const block_identity> chain) const;

  /// What to write so that the blocks are there. Leaves out those that are there, those whose parent is not,
  /// those that do not fit (a block of more than the limit; nothing left to evict but what stands before
  /// them). Only one plan at a time.
  std::vector<step> plan(std::span<const cold_block> blocks);
  /// The steps of the last plan are on disk.
  void confirm();

  /// The first `count` blocks of a chain were read.
  void visited(std::span<const block_identity> chain, std::size_t count);
  /// Blocks that were read since this told of them, or as many of them as it remembers.
  std::vector<use> take_uses(std::size_t most);
  /// A block turned out not to be there, or damaged. Those behind it are of no use until it is written again.
  /// @returns the place of its record; nothing if it is not known
  std::optional<std::uint32_t> lost(const block_identity& identity);

  /// Starts again with what a disk holds. @returns steps that drop what is of no use or too much
  std::vector<step> restore(std::vector<cold_codec::note> notes);
  /// Takes the place of one that readers may still compare given_up() with.
  void succeed(const cold_index& old) { given_up_ += old.given_up_ + 1; }

 private:
  using slot = block_index::slot;
  static constexpr slot none = block_index::none;
  /// Where a slot's record is, or was.
  struct stored {
    std::uint32_t bytes = 0; ///< 0: not on disk
    std::uint32_t place = 0;
  };
  struct addition {
    slot which = none;
    stored at;
  };

  bool there(slot which) const { return which != none && stored_[which].bytes != 0; }
  bool is_planned(slot which) const;
  void set(slot which, stored at);
  void give_up(slot which, std::vector<step>& steps);
  /// Keeps a block from being evicted until the plan is made.
  void set_aside(slot which);
  /// Evicts until there is room. @returns false if there is nothing left to evict
  bool make_room(std::uint64_t bytes, std::vector<step>& steps);

  std::uint64_t limit_bytes_;
  block_index index_;
  std::vector<stored> stored_; ///< by slot
  std::uint32_t next_place_ = 1;
  std::unordered_set<block_identity> visited_;
  std::vector<slot> aside_; ///< while a plan is made
  std::vector<addition> planned_;
  std::uint64_t planned_bytes_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t blocks_ = 0;
  std::uint64_t given_up_ = 0;
};

} // namespace godwit
