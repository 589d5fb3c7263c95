#pragma once

#include "actors/cache/block_index.hpp"
#include "messages/result.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace godwit {

/// Copies of full blocks in host memory, within a budget of their own. Memory is reserved at once and becomes
/// resident as places are first used. Which blocks go for others says block_index, as on the device; a block
/// is only kept with all blocks before it.
///
/// Who fills or reads a place does that outside, on any thread, and holds the place meanwhile. All else
/// happens on one thread.
class host_tier {
 public:
  using place = std::uint32_t;
  static constexpr place nowhere = ~place{0};

  /// @param block_bytes kv_shape::block_bytes()
  /// @param budget bytes; rounded down to blocks
  /// @param doubles_at see block_index
  /// @returns `invalid_argument` with both numbers if not even one block fits, `resource_exhausted` if the
  /// system refuses the address space
  static result<std::unique_ptr<host_tier>> create(
    std::size_t block_bytes, std::uint64_t budget, std::uint32_t doubles_at);
  ~host_tier();
  host_tier(const host_tier&) = delete;
  host_tier& operator=(const host_tier&) = delete;

  /// How many of a chain's blocks, from the first on, are there and filled.
  std::size_t known(std::span<const block_identity> chain) const;
  /// nowhere: it is not there, or not filled yet.
  place find(const block_identity& identity) const;
  /// True for a block that is being filled, too.
  bool has(const block_identity& identity) const { return index_.find(identity) != block_index::none; }

  /// A place for a block that is not there, which the caller holds and has to fill. The least worthy blocks
  /// that nobody holds go for it.
  /// @param parent the block before it; null: it is the first one
  /// @returns nowhere if the parent is not there, or nothing can go
  place reserve(const block_identity& identity, const block_identity* parent);
  /// The content is there; the place is not held any more.
  void filled(place where);
  /// Blocks whose place is held do not go. A place may be held many times.
  void hold(place where) { ++places_[where].holders; }
  void let_go(place where);

  /// These were asked for, from the first on.
  void asked(std::span<const block_identity> chain);
  /// Forgets a block. @returns false if it is held, others follow it, or it is not there
  bool erase(const block_identity& identity);

  /// block_bytes of a place that the caller holds.
  std::span<std::byte> contents(place where) {
    return {memory_ + std::size_t{where} * block_bytes_, block_bytes_};
  }

  std::size_t size() const { return index_.size(); }
  std::uint32_t capacity() const { return static_cast<std::uint32_t>(places_.size()); }
  std::uint64_t bytes() const { return index_.size() * std::uint64_t{block_bytes_}; }
  std::uint64_t evictions() const { return evictions_; }

 private:
  struct state {
    block_index::slot slot = block_index::none;
    std::uint32_t holders = 0;
    bool full = false;
  };

  host_tier(std::byte* memory, std::size_t block_bytes, std::uint32_t places, std::uint32_t doubles_at);
  bool make_room(block_index::slot parent);

  std::byte* memory_;
  std::size_t block_bytes_;
  block_index index_;
  std::vector<state> places_;
  std::vector<place> free_;
  std::uint64_t evictions_ = 0;
};

} // namespace godwit
