#pragma once

#include "actors/cache/block_identity.hpp"
#include "actors/cache/block_index.hpp"
#include "kernels/memory/page_pool.hpp"
#include "messages/ids.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace godwit {

struct prefix_cache_options {
  std::uint32_t budget = 0;        ///< blocks that it may hold
  std::uint32_t pin_quota = 0;     ///< blocks that one tenant may pin
  std::uint32_t most_pins = 64;    ///< of one tenant
  std::uint32_t doubles_at = 4096; ///< see block_index
};

using pin_id = std::uint64_t;

/// What a pin holds.
struct prefix_pin {
  pin_id id = 0;
  std::uint32_t blocks = 0; ///< of the prefix; fewer than asked for if no more are known
};

/// Which full blocks of which tokens are in the page pool. Holds one reference of each block it knows, so
/// that blocks outlive their sequences; a block that nobody else holds can be given up. What goes first says
/// block_index; a block never goes before the blocks that follow it. Not thread-safe; the pool is.
class prefix_cache {
 public:
  using clock = std::chrono::steady_clock;

  prefix_cache(std::shared_ptr<page_pool> pool, block_hasher hasher, prefix_cache_options options);
  ~prefix_cache();
  prefix_cache(const prefix_cache&) = delete;
  prefix_cache& operator=(const prefix_cache&) = delete;

  /// The blocks of the longest known prefix of `tokens`, with a reference of each for the caller.
  std::vector<block_id> find(std::string_view tenant, std::span<const token_id> tokens);
  /// The same by the names of the blocks.
  std::vector<block_id> find(std::span<const block_identity> names);

  /// Learns the blocks of a prefix and takes over a reference of each. Where it knows equal blocks already,
  /// it keeps those. Stops where the budget is used up by blocks in use.
  /// @param names one for each block
  void insert(std::span<const block_identity> names, std::span<const block_id> blocks);
  /// The same for blocks that have no names yet.
  /// @param tokens `page_tokens` for each block
  void insert(std::string_view tenant, std::span<const token_id> tokens, std::span<const block_id> blocks);
  /// Blocks that follow another one. Without that one they are of no use, and are not kept.
  void extend(
    const block_identity& parent, std::span<const block_identity> names, std::span<const block_id> blocks);

  /// Gives up blocks that nobody else holds. Pins end before it says that there are no more: they hold
  /// blocks against other cached ones, not against work that could not go on without. @returns how many
  std::uint32_t evict(std::uint32_t blocks);
  /// The same without ending pins.
  std::uint32_t evict_unpinned(std::uint32_t blocks);

  /// A block by its name, without asking for it; null if it is not known. Good until the next change.
  const block_index::entry* look(const block_identity& identity) const;
  /// Forgets one block. @returns false if somebody else holds it, a pin does, others follow it, or it is not
  /// known
  bool leave(const block_identity& identity);
  /// Forgets the blocks that follow one, if they are few, nobody asked for them, and no text branches there:
  /// what a generation computed beyond what was taken of it.
  void leave_behind(const block_identity& identity, std::size_t most);

  /// Keeps the known prefix of `tokens` until `until`, or until unpin().
  /// @returns `not_found` if not even the first block is known, `resource_exhausted` with both numbers if the
  /// tenant's quota does not allow it
  result<prefix_pin> pin(std::string_view tenant, std::span<const token_id> tokens, clock::time_point until);
  /// Ends a pin of this tenant. @returns false if there is none
  bool unpin(std::string_view tenant, pin_id pin);
  /// Ends the pins whose time is over.
  void expire(clock::time_point now);

  std::size_t size() const { return index_.size(); }
  std::uint64_t evictions() const { return evictions_; }
  std::size_t pins() const { return pins_.size(); }
  std::uint32_t pinned_blocks() const { return pinned_blocks_; }
  std::size_t index_bytes() const { return index_.bytes(); }

 private:
  using slot = block_index::slot;
  static constexpr slot none = block_index::none;

  struct pinned {
    std::string tenant;
    slot last = none;
    clock::time_point until;
  };
  struct holdings {
    std::uint32_t blocks = 0;
    std::uint32_t pins = 0;
  };
  using pins_by_id = std::map<pin_id, pinned>;

  /// Where a walk along a chain of names is.
  struct walk {
    slot last = none;
    slot step = 1; ///< from there to where the next one is expected
    bool scattered = false;
    std::vector<block_id> found = {};
  };
  /// Names that are looked up together.
  static constexpr std::size_t stride = 32;

  bool follow(walk& at, std::span<const block_identity> names);
  std::vector<block_id> arrive(walk& at);
  void learn(slot last, std::span<const block_identity> names, std::span<const block_id> blocks);
  /// Gives up one block that is not part of the chain that ends with `last`.
  bool evict_beside(slot last);
  pins_by_id::iterator end(pins_by_id::iterator which);

  std::shared_ptr<page_pool> pool_;
  block_hasher hasher_;
  prefix_cache_options options_;
  block_index index_;
  pins_by_id pins_;
  std::map<std::string, holdings, std::less<>> by_tenant_; ///< of those that have pins
  pin_id last_pin_ = 0;
  std::uint32_t pinned_blocks_ = 0;
  std::uint64_t evictions_ = 0;
};

} // namespace godwit
