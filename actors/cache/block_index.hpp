#pragma once

#include "actors/cache/block_identity.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace godwit {

/// Which blocks somebody has, as a forest: a block is of use only with all blocks before it. Knows what each
/// is worth and names the one to give up first. Knows nothing of pages, so that every tier can have one.
///
/// A block is worth what it would cost to compute again, times how often it was asked for, on top of the
/// worth of the last one that was given up: so a block that nobody asks for grows old without being touched,
/// and one that is asked for often, or stands far behind, grows old slowly. (GreedyDual-Size-Frequency, L.
/// Cherkasova, HPL-98-69R1, with blocks of one size.) Only the ends of chains are given up, and none that is
/// pinned. All operations take constant time, but for those that change the end of a chain: O(log blocks).
///
/// At most 80 bytes a block once it has 4,096; see bytes(). Not thread-safe.
class block_index {
 public:
  using slot = std::uint32_t;
  static constexpr slot none = ~slot{0};

  struct entry {
    block_identity identity;
    double worth = 0;
    std::uint32_t where = 0; ///< what the owner of the index wants to know: a block, a place in memory
    slot parent = none;      ///< next free one, if the slot is not in use
    std::uint32_t children = 0;
    std::uint32_t used = 0;  ///< when it was asked for last, by counting; breaks ties of worth
    slot heap = none;        ///< where it stands in the heap of ends
    std::uint16_t depth = 0; ///< blocks before it; stops at the greatest number
    std::uint8_t hits = 0;   ///< how often it was asked for; stops at the greatest number
    std::uint8_t pins = 0;   ///< pins that hold it, or blocks behind it
  };

  /// @param doubles_at tokens after which a token costs twice what the first one does, since it reads all
  /// those before it
  explicit block_index(std::uint32_t doubles_at = 4096);

  std::size_t size() const { return size_; }
  /// Memory that it has taken.
  std::size_t bytes() const;

  /// @returns none if it is not there
  slot find(const block_identity& identity) const;
  /// The same for a block that may well be in that slot, if there is such a slot: blocks of a chain often
  /// stand in a row, and then no memory but their own is read.
  slot find_near(slot guess, const block_identity& identity) const;
  /// Has the memory fetched that find() will read first: a prefix is found faster if many are asked for
  /// ahead.
  void prefetch(const block_identity& identity) const {
    __builtin_prefetch(&table_[tag_of(identity) & (table_.size() - 1)]);
  }
  /// The same for the block itself, once that is there.
  void prefetch_entry(const block_identity& identity) const {
    const auto word = table_[tag_of(identity) & (table_.size() - 1)];
    if (word != empty)
      __builtin_prefetch(&at(static_cast<slot>(word)));
  }
  const entry& operator[](slot which) const { return at(which); }
  /// The block that follows, if exactly one does; else none. Looks through all blocks.
  slot only_child(slot which) const;

  /// The chain that ends here was asked for; its blocks were visited, from the first on. @returns the block
  const entry& visit(slot which);
  void visited(slot last);
  /// A block is in use, but nobody asked for it because it might be there. Call added() after the last one.
  void refresh(slot which);

  /// Adds a block that is not there. Call added() when the chain's last one was.
  /// @param parent none: the first of its chain
  slot add(const block_identity& identity, std::uint32_t where, slot parent);
  void added(slot last);

  /// Sets what is known of a block that was added, from before a restart; so the index is as old as it was
  /// when the last of its blocks was asked for. Call put_back() when the chain's last one was added.
  void restore(slot which, std::uint8_t hits, double worth);

  /// The least worthy end of a chain that may go; none: there is no such.
  slot worst() const { return heap_.empty() ? none : heap_.front(); }
  /// Sets an end aside so that worst() does not name it, until it is put back.
  void set_aside(slot end);
  void put_back(slot end);
  /// Forgets an end of a chain. Its parent may become one.
  void erase(slot end);
  /// The same, because something worthier needed the room: all that stay grow older.
  void give_up(slot end);

  /// Holds a block and all before it, which are then not named by worst(). @returns blocks that no pin held
  /// before, or nothing done and none if a block has too many pins
  std::uint32_t pin(slot last);
  /// @returns blocks that no pin holds any more
  std::uint32_t unpin(slot last);
  /// Blocks that pin() would hold beyond those that are held.
  std::uint32_t unpinned_before(slot last) const;

 private:
  static constexpr std::size_t chunk_entries = 512;
  static constexpr std::uint64_t empty = ~std::uint64_t{0};

  entry& at(slot which) { return (*chunks_[which / chunk_entries])[which % chunk_entries]; }
  const entry& at(slot which) const { return (*chunks_[which / chunk_entries])[which % chunk_entries]; }
  double gain(const entry& item) const { return (1.0 + item.hits) * (1.0 + slope_ * item.depth); }
  void touch(entry& item);
  /// In the order in which ends are given up.
  bool before(slot a, slot b) const;
  bool may_go(const entry& item) const { return item.children == 0 && item.pins == 0; }
  void push(slot which);
  void pull(slot which);
  void sift_up(slot which, std::size_t place);
  void sift_down(slot which, std::size_t place);
  void grow();
  void remember(slot which);
  void forget(slot which);
  static std::uint32_t tag_of(const block_identity& identity) {
    return static_cast<std::uint32_t>(identity.low);
  }

  double slope_; ///< cost of a block beyond the first one's, for each block before it
  double age_ = 0;
  std::uint32_t clock_ = 0;
  std::size_t size_ = 0;
  slot free_ = none;
  slot next_ = 0; ///< the first slot that was never used
  std::vector<std::unique_ptr<std::array<entry, chunk_entries>>> chunks_;
  /// By the low bits of identities, open addressing: tag in the high half, slot in the low one.
  std::vector<std::uint64_t> table_;
  std::vector<slot> heap_; ///< ends that may go, the least worthy first
};

// A prefix has thousands of blocks: these three run for each of them.

inline block_index::slot block_index::find(const block_identity& identity) const {
  const auto mask = table_.size() - 1;
  const auto tag = tag_of(identity);
  for (auto place = tag & mask; table_[place] != empty; place = (place + 1) & mask)
    if (table_[place] >> 32 == tag) {
      const auto which = static_cast<slot>(table_[place]);
      if (at(which).identity == identity)
        return which;
    }
  return none;
}

inline block_index::slot block_index::find_near(slot guess, const block_identity& identity) const {
  // What is not in use has no name.
  return guess < next_ && at(guess).identity == identity ? guess : find(identity);
}

inline void block_index::touch(entry& item) {
  item.worth = age_ + gain(item);
  item.used = clock_;
}

inline const block_index::entry& block_index::visit(slot which) {
  auto& item = at(which);
  item.hits = static_cast<std::uint8_t>(item.hits + (item.hits < 255 ? 1 : 0));
  touch(item);
  return item;
}

} // namespace godwit
