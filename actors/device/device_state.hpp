#pragma once

#include "actors/cache/block_identity.hpp"
#include "actors/device/engine_counters.hpp"
#include "actors/device/recall_list.hpp"
#include "actors/device/rendezvous.hpp"
#include "actors/device/step.hpp"
#include "actors/device/step_pace.hpp"
#include "actors/device/step_planner.hpp"
#include "kernels/memory/page_pool.hpp"
#include "kernels/memory/sequence.hpp"
#include "kernels/models/model.hpp"
#include "kernels/sampling/row_sampler.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace godwit {

/// Computed blocks for the cache, which takes over one reference of each.
struct cache_insertion {
  std::string tenant;
  block_identity parent; ///< the block before them; zero: they are the first ones of the tenant's text
  std::vector<block_identity> names;
  std::vector<block_id> blocks;
  bool swapped = false; ///< the sequence had to give them up and will be back
};

/// The results of a step, and who must be told.
struct step_outcome {
  step_result result;
  std::array<bool, step_roles> told{}; ///< by role; each that is told owes an answer
};

/// The model, its pages and its sequences: collects what the roles submit, decides what fits, runs it and
/// samples. Order of calls: submit() and close() whenever they come; then next() until it says `wait`,
/// obeying it each time.
class device_state {
 public:
  using clock = std::chrono::steady_clock;

  /// What to do now.
  enum class action : std::uint8_t {
    wait,  ///< for a submission
    evict, ///< ask the cache for wanted_blocks(), then call evicted()
    run,   ///< call run()
  };

  /// @param hasher knows the blocks by the names that the cache has for them
  /// @param stall a sequence that had no row for so long gives its pages to any other
  /// @param recalled sequences to close before anything else is done
  device_state(std::shared_ptr<model> model, std::shared_ptr<page_pool> pool, block_hasher hasher,
    step_limits limits, clock::duration stall, std::shared_ptr<engine_counters> counters,
    std::shared_ptr<recall_list> recalled = std::make_shared<recall_list>());

  void submit(submission wishes);
  void close(std::span<const sequence_key> keys);

  /// Cuts what one head of a sequence keeps; see sequence::keep. From now on it is an approximation, of which
  /// the cache is told nothing. Should it lose its pages, it starts again as an exact one.
  /// @returns pages that came free; `not_found`, or what sequence::keep says
  result<std::uint32_t> keep(
    sequence_key key, std::uint32_t layer, std::uint32_t head, std::span<const position_t> positions);

  action next(clock::time_point now);
  std::uint32_t wanted_blocks() const { return wanted_blocks_; }
  void evicted(std::uint32_t blocks);

  /// One step. @pre next() said `run`
  step_outcome run();

  /// Blocks computed since the last call, to be sent to the cache before anything else.
  std::vector<cache_insertion> take_insertions() { return std::exchange(insertions_, {}); }
  /// True once after starved rows were reported and then something changed that may let them run.
  bool take_freed();
  /// Rows were starved and nothing has come free since: worth a look again after a while.
  bool starving() const { return starving_; }
  /// Lets starved rows be offered again although nothing was seen to come free.
  void retry() { freed_ = true; }
  /// A role has not answered yet.
  bool waiting() const { return meeting_.waiting(); }
  /// Goes on without a role that does not answer.
  void give_up() { meeting_.give_up(); }

  std::size_t open_sequences() const { return residents_.size(); }
  /// What the last step that failed died of; empty if none did.
  const std::string& last_failure() const { return last_failure_; }

 private:
  struct resident {
    explicit resident(page_pool& pool) : kv(pool) {}

    sequence kv;
    rank order;
    std::string tenant;
    std::vector<token_id> tokens;
    std::uint32_t prompt_length = 0;
    sampling_settings sampling;
    bool prompt = true;                ///< nothing sampled yet
    found_tokens cached;               ///< tokens adopted
    std::uint32_t cached_at_most = 0;  ///< see sequence_opening
    std::uint32_t hole_at = 0;         ///< tokens; above 0: no farther, blocks for what is behind are coming
    std::vector<block_identity> names; ///< of the blocks that the cache knows or was told of
    std::optional<clock::time_point> idle_since;

    std::uint32_t left() const { return static_cast<std::uint32_t>(tokens.size()) - kv.length(); }
    /// Of these, what can be computed now.
    std::uint32_t ahead() const { return hole_at > 0 ? hole_at - kv.length() : left(); }
  };
  using residents = std::map<sequence_key, resident>;

  void fill(hole_filling& what);
  void take_recalled();
  void end(residents::iterator which);
  void collect();
  void mark_idle(clock::time_point now);
  residents::iterator victim_for(const step_candidate& starved, clock::time_point now);
  void preempt(residents::iterator victim);
  void name(resident& which, std::size_t blocks) const;
  void remember(resident& which);
  void remember_all(const resident& which, bool swapped);
  cache_insertion& insert(const resident& which, std::size_t first, std::size_t end);
  void forget(residents::iterator which);
  void report_room(step_result& result);
  void reserve(step_result& result);
  void compute(step_result& result);
  void fail_step(step_result& result, const std::string& why);
  void sample_rows(step_result& result, std::span<const planned_row> rows, std::span<const float> logits);
  row_result describe(sequence_key key, const resident& which, row_outcome outcome) const;
  void learn_pace(clock::duration took);
  void count_prompts(std::uint32_t streams, std::uint32_t prompt, clock::duration took);
  void count_step(clock::time_point start, clock::time_point end);

  std::shared_ptr<model> model_;
  std::shared_ptr<page_pool> pool_;
  block_hasher hasher_;
  step_limits limits_;
  step_pace pace_;
  clock::duration stall_;
  std::shared_ptr<engine_counters> counters_;
  std::shared_ptr<recall_list> recalled_;

  std::set<sequence_key>
    recalled_keys_; ///< until their close comes: an opening of one is older than its recall
  residents residents_;
  rendezvous meeting_;
  std::vector<step_candidate> candidates_;
  step_plan plan_;
  std::vector<row_result> preempted_; ///< to be reported with the next result
  std::vector<cache_insertion> insertions_;
  std::vector<float> logits_;
  row_sampler sampler_;

  step_number step_ = 0;
  std::string last_failure_;
  std::uint32_t wanted_blocks_ = 0;
  bool evicting_ = false;    ///< the cache was asked
  bool cache_empty_ = false; ///< it had nothing more
  bool starving_ = false;
  bool freed_ = false;
  bool idle_ = true; ///< nothing was to be done since the last step
  clock::time_point last_end_{};
};

} // namespace godwit
