#pragma once

#include "actors/cache/cold_store.hpp"
#include "actors/cache/host_tier.hpp"
#include "actors/cache/onboard_policy.hpp"
#include "actors/cache/prefix_cache.hpp"
#include "actors/cache/work_lane.hpp"
#include "actors/device/engine_counters.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace godwit {

/// Where the tiers do their work.
struct tier_lanes {
  std::unique_ptr<work_lane> memory; ///< copies between device and host
  std::unique_ptr<work_lane> read;   ///< from the cold store
  std::unique_ptr<work_lane> write;  ///< to it
};
tier_lanes threaded_lanes();
tier_lanes immediate_lanes();

struct tier_options {
  std::uint64_t host_bytes = 0;          ///< budget of the host tier; 0: there is none
  std::shared_ptr<cold_store> cold = {}; ///< null: there is none
  /// A block goes down when it was asked for so often; 0: each does when its sequence ends.
  std::uint8_t reuse = 1;
  std::uint32_t in_flight = 0; ///< blocks on their way down because of that; 0: a quarter of the pool
  onboarding mode = onboarding::measured;
  std::function<tier_lanes()> lanes = {}; ///< null: threaded_lanes
};

/// Tokens that each tier has of a text, from the first on. Several may have the same.
struct tier_holdings {
  std::uint32_t device = 0;
  std::uint32_t host = 0;
  std::uint32_t disk = 0;
};

/// What a look-up finds at once.
struct tier_answer {
  std::vector<block_id> blocks;          ///< on the device, with a reference of each for the caller
  std::uint32_t loading = 0;             ///< blocks that follow and are being brought there
  std::uint32_t tail = 0;                ///< the last of these, which stand behind
  std::uint32_t gap = 0;                 ///< blocks that the caller is to compute meanwhile
  std::uint32_t waiting = 0;             ///< blocks that a lower tier has, and for which there is no room now
  std::chrono::milliseconds patience{0}; ///< computing all that is being brought would take so long
};

/// What was brought to the device for a look-up.
struct tier_load {
  std::vector<block_id> blocks; ///< with a reference of each for the caller; fewer than announced if the
                                ///< cold store lost some
  std::uint32_t first = 0;      ///< blocks before these
  std::uint32_t host = 0;       ///< the first ones came from here
  std::uint32_t disk = 0;       ///< and those behind them from here
  std::uint32_t loading = 0;    ///< blocks that are still being brought for it
};

/// The prefix cache of a device over its lower tiers: host memory and a cold store. What is asked for again
/// is copied down ahead of its eviction, what was preempted or suspended at once; so giving a block up is
/// only ever a matter of its reference. Copies hold references while they run: full blocks never change.
///
/// All methods on one thread. Work goes to the lanes, and what follows from it comes back by `post`, which
/// calls it on that thread.
class tiered_cache {
 public:
  using task = std::function<void()>;
  /// Has a task run on the owner's thread, after so long.
  using poster = std::function<void(task, std::chrono::milliseconds)>;

  /// @returns what host_tier::create() does
  static result<std::unique_ptr<tiered_cache>> create(std::shared_ptr<page_pool> pool,
    const block_hasher& hasher, const prefix_cache_options& device, const tier_options& options,
    std::shared_ptr<engine_counters> counters, poster post);
  ~tiered_cache();
  tiered_cache(const tiered_cache&) = delete;
  tiered_cache& operator=(const tiered_cache&) = delete;

  /// The tier on the device itself: insertions and pins are its own affair.
  prefix_cache& device() { return device_; }
  const prefix_cache& device() const { return device_; }

  /// Finds the longest prefix over all tiers.
  /// @param tokens those that are wanted, at most; the prompt may be longer
  /// @param then called with what was loaded if the answer says that something is, once, or once more for the
  /// tail, in any order; not after forgo()
  tier_answer find(request_id request, std::string_view tenant, std::span<const token_id> tokens,
    std::function<void(tier_load)> then);
  /// Nobody waits for what is being loaded for this request: its blocks are free within one block's time.
  void forgo(request_id request);

  /// The names of blocks.
  /// @param parent the block before them; zero: they begin a text of this tenant
  std::vector<block_identity> name(
    std::string_view tenant, const block_identity& parent, std::span<const token_id> tokens) const;
  /// Blocks of a text from its beginning on, whose device has told of them.
  void told(std::string_view tenant, std::span<const block_identity> names);
  /// A sequence had to give its pages up and will be back: keeps copies of its blocks in host memory.
  /// @param names of the blocks, from the first of its text on
  void swapped(std::span<const block_identity> names);

  /// Gives up blocks that nobody uses. If there are too few, waits for copies under way, which use some.
  /// @param done called once with how many
  void evict(std::uint32_t blocks, std::function<void(std::uint32_t)> done);

  /// The blocks of a text that are on the device, with a reference of each for the caller; asks for nothing.
  std::vector<block_id> hold(std::string_view tenant, std::span<const token_id> tokens) const;

  /// What there is of a text; asks for nothing.
  tier_holdings probe(std::string_view tenant, std::span<const token_id> tokens) const;

  /// Moves what is known of a text to the lowest tier and frees its pages, unless others use them.
  /// @param done called once with what the tiers have then; `overloaded` if too many are under way
  void suspend(std::string_view tenant, std::span<const token_id> tokens,
    std::function<void(result<tier_holdings>)> done);

  /// Brings the gauges up to date.
  void count() const;

 private:
  using block_names = std::vector<block_identity>;

  struct load;
  struct copy;
  struct writing;
  struct suspension;
  struct waiting_eviction {
    std::uint32_t wanted;
    std::uint32_t freed;
    std::function<void(std::uint32_t)> done;
  };

  tiered_cache(std::shared_ptr<page_pool> pool, const block_hasher& hasher,
    const prefix_cache_options& device, const tier_options& options, std::unique_ptr<host_tier> host,
    std::shared_ptr<engine_counters> counters, poster post);

  block_names chain_of(std::string_view tenant, std::span<const token_id> tokens) const;
  bool tiers() const { return host_ != nullptr || options_.cold != nullptr; }
  void post(task what) const { post_(std::move(what), std::chrono::milliseconds(0)); }
  /// Calls `then` when the lane has done what it was given before.
  void behind(work_lane& lane, task then) const;

  // Down: tiers_down.cpp.
  void keep_reused(std::string_view tenant, std::span<const block_identity> chain);
  std::size_t copy_down(std::span<const block_identity> chain, bool bounded);
  bool submit(copy batch);
  void copied(const copy& done);
  void write_down(std::string_view tenant, std::span<const block_identity> chain, bool bounded);
  void submit(writing batch);
  void written(const writing& done);
  void settle(const std::shared_ptr<suspension>& what);
  void serve_evictions();
  bool leave(std::span<const block_identity> chain, bool host_too);

  // Up: tiers_up.cpp.
  /// Which blocks of a chain are brought, and from where.
  struct stretch {
    std::uint32_t first = 0;
    std::uint32_t host = 0;
    std::uint32_t disk = 0; ///< behind those
    bool behind_a_gap = false;
  };
  void begin_load(request_id request, const block_names& names, const stretch& which,
    std::span<const block_id> blocks, const std::function<void(tier_load)>& then);
  std::vector<block_id> room_for(std::uint32_t blocks, std::uint32_t beside);
  void run(load& what) const;
  double expected_wait() const;
  void loaded(const std::shared_ptr<load>& what);
  void learn_rates();

  std::shared_ptr<page_pool> pool_;
  block_hasher hasher_;
  tier_options options_;
  std::uint32_t in_flight_limit_;
  std::shared_ptr<engine_counters> counters_;
  poster post_;
  prefix_cache device_;
  std::unique_ptr<host_tier> host_; ///< may be null
  onboard_policy policy_;

  /// By request, and whether it stands behind a gap.
  std::map<std::pair<request_id, bool>, std::shared_ptr<load>> loads_;
  std::list<waiting_eviction> evictions_;
  std::uint32_t copying_ = 0;                  ///< blocks on their way to the host
  std::unordered_set<block_identity> writing_; ///< on their way to the cold store
  std::uint32_t suspending_ = 0;
  bool refused_ = false; ///< the cold store did not take the last write
  std::chrono::steady_clock::time_point retry_at_{};
  std::uint64_t seen_work_ = 0;
  std::uint64_t seen_nanoseconds_ = 0;

  tier_lanes lanes_; ///< last: their jobs use the others
};

} // namespace godwit
