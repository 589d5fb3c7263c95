#include "actors/device/device_state.hpp"

#include "messages/check.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace godwit {
namespace {

/// Blocks asked of the cache at once, so that a long run of new blocks does not ask for each.
constexpr std::uint32_t eviction_batch = 16;

std::uint64_t nanoseconds(device_state::clock::duration time) {
  return static_cast<std::uint64_t>(
    std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::nanoseconds>(time).count()));
}

} // namespace

device_state::device_state(std::shared_ptr<model> model, std::shared_ptr<page_pool> pool, block_hasher hasher,
  step_limits limits, clock::duration stall, std::shared_ptr<engine_counters> counters,
  std::shared_ptr<recall_list> recalled)
  : model_(std::move(model)), pool_(std::move(pool)), hasher_(std::move(hasher)), limits_(limits),
    pace_(limits.inter_token), stall_(stall), counters_(std::move(counters)), recalled_(std::move(recalled)) {
  limits_.rows = std::min(limits_.rows, model_->max_rows());
  limits_.budget = std::min(limits_.budget, limits_.rows);
  counters_->free_blocks = pool_->free_blocks();
}

void device_state::submit(submission wishes) {
  take_recalled();
  for (auto& opening : wishes.openings) {
    if (recalled_keys_.contains(opening.key)) {
      pool_->release_blocks(opening.cached);
      continue;
    }
    if (const auto old = residents_.find(opening.key); old != residents_.end())
      forget(old);
    resident fresh(*pool_);
    fresh.kv.adopt(opening.cached);
    GODWIT_CHECK(fresh.kv.length() < opening.tokens.size());
    fresh.order = opening.order;
    fresh.tenant = std::move(opening.tenant);
    fresh.tokens = std::move(opening.tokens);
    fresh.prompt_length = opening.prompt_length;
    fresh.sampling = std::move(opening.sampling);
    fresh.cached =
      found_tokens{fresh.kv.length(), opening.cached_host, opening.cached_disk}.first(opening.cached_at_most);
    fresh.cached_at_most = opening.cached_at_most;
    fresh.hole_at = opening.hole_at;
    GODWIT_CHECK(fresh.hole_at == 0
                 || (fresh.hole_at > fresh.kv.length() && fresh.hole_at < fresh.tokens.size()
                     && fresh.hole_at % page_tokens == 0));
    name(fresh, opening.cached.size());
    residents_.emplace(opening.key, std::move(fresh));
  }
  for (auto& filling : wishes.fillings)
    fill(filling);
  meeting_.submit(wishes.role, wishes.seen, std::move(wishes.rows));
  counters_->sequences = residents_.size();
}

/// Takes blocks behind what was computed while they were brought.
void device_state::fill(hole_filling& what) {
  const auto found = residents_.find(what.key);
  // It may have ended or lost its pages since, or heads may have been cut: then they are of use to nobody.
  const bool fits = found != residents_.end() && found->second.hole_at == what.at && what.at > 0
                    && (what.blocks.empty() || found->second.kv.length() == what.at);
  if (!fits || found->second.kv.ragged()) {
    pool_->release_blocks(what.blocks);
    what.blocks.clear();
  }
  if (!fits)
    return;
  auto& which = found->second;
  which.hole_at = 0;
  if (what.blocks.empty())
    return;
  which.kv.adopt(what.blocks);
  GODWIT_CHECK(which.kv.length() < which.tokens.size());
  const auto more = std::min(static_cast<std::uint32_t>(what.blocks.size() * page_tokens),
    which.cached_at_most - std::min(which.cached_at_most, which.cached.all));
  which.cached.all += more;
  which.cached.disk += more;
  // The cache could not learn them when they came: it did not know the block before them yet.
  remember(which);
}

void device_state::close(std::span<const sequence_key> keys) {
  take_recalled();
  for (const auto key : keys) {
    recalled_keys_.erase(key);
    if (const auto which = residents_.find(key); which != residents_.end())
      end(which);
  }
  counters_->sequences = residents_.size();
  counters_->free_blocks = pool_->free_blocks();
}

void device_state::take_recalled() {
  const auto keys = recalled_->take();
  if (keys.empty())
    return;
  for (const auto key : keys) {
    recalled_keys_.insert(key);
    if (const auto which = residents_.find(key); which != residents_.end())
      end(which);
  }
  counters_->sequences = residents_.size();
  counters_->free_blocks = pool_->free_blocks();
}

void device_state::end(residents::iterator which) {
  remember_all(which->second, false);
  forget(which);
}

result<std::uint32_t> device_state::keep(
  sequence_key key, std::uint32_t layer, std::uint32_t head, std::span<const position_t> positions) {
  const auto which = residents_.find(key);
  if (which == residents_.end())
    return fail(errc::not_found, "there is no such sequence on the device");
  const auto freed = which->second.kv.keep(layer, head, positions);
  freed_ = freed_ || (freed && *freed > 0);
  counters_->free_blocks = pool_->free_blocks();
  return freed;
}

bool device_state::take_freed() {
  if (!starving_ || !freed_)
    return false;
  starving_ = freed_ = false;
  return true;
}

void device_state::evicted(std::uint32_t blocks) {
  evicting_ = false;
  cache_empty_ = blocks < wanted_blocks_;
}

device_state::action device_state::next(clock::time_point now) {
  take_recalled();
  if (evicting_ || meeting_.waiting())
    return action::wait;
  if (meeting_.empty() && preempted_.empty()) {
    idle_ = true;
    return action::wait;
  }
  while (true) {
    collect();
    mark_idle(now);
    auto limits = limits_;
    limits.chunk = pace_.prompt_tokens(prompt_floor, limits_.chunk);
    plan_ = plan_step(candidates_, pool_->free_blocks(), limits);
    if (plan_.starved.empty())
      return action::run;
    if (!cache_empty_) {
      wanted_blocks_ = std::max(plan_.missing, eviction_batch);
      evicting_ = true;
      return action::evict;
    }
    const auto victim = victim_for(candidates_[plan_.starved.front()], now);
    if (victim == residents_.end())
      return action::run;
    preempt(victim);
  }
}

/// Turns the offered rows into candidates; rows of sequences that were closed meanwhile drop out.
void device_state::collect() {
  candidates_.clear();
  for (const auto role : {step_role::decode, step_role::prefill})
    for (const auto& row : meeting_.rows(role)) {
      const auto found = residents_.find(row.sequence);
      const bool twice = std::any_of(candidates_.begin(), candidates_.end(),
        [&](const step_candidate& other) { return other.sequence == row.sequence; });
      if (found == residents_.end() || row.tokens == 0 || twice || found->second.ahead() == 0)
        continue;
      const auto& which = found->second;
      step_candidate candidate;
      candidate.sequence = row.sequence;
      candidate.order = which.order;
      candidate.prompt = which.prompt;
      candidate.room_only = row.tokens == room_only;
      candidate.tokens = std::min(row.tokens, which.ahead());
      candidate.blocks = which.kv.blocks_needed(which.ahead());
      candidates_.push_back(candidate);
    }
}

void device_state::mark_idle(clock::time_point now) {
  for (auto& [key, which] : residents_) {
    const bool has_row = std::any_of(candidates_.begin(), candidates_.end(),
      [key = key](const step_candidate& candidate) { return candidate.sequence == key; });
    if (has_row)
      which.idle_since.reset();
    else if (!which.idle_since)
      which.idle_since = now;
  }
}

/// Whose pages a starved row may take: a stalled sequence's, else those of the last in rank behind it.
device_state::residents::iterator device_state::victim_for(
  const step_candidate& starved, clock::time_point now) {
  auto best = residents_.end();
  bool best_stalled = false;
  for (auto it = residents_.begin(); it != residents_.end(); ++it) {
    const auto& which = it->second;
    if (it->first == starved.sequence || !which.kv.holds_pages())
      continue;
    const bool stalled = which.idle_since && now - *which.idle_since >= stall_;
    if (!stalled && !starved.order.before(which.order))
      continue;
    const bool better = best == residents_.end()
                        || (stalled != best_stalled ? stalled : best->second.order.before(which.order));
    if (better) {
      best = it;
      best_stalled = stalled;
    }
  }
  return best;
}

void device_state::preempt(residents::iterator victim) {
  remember_all(victim->second, true);
  preempted_.push_back(describe(victim->first, victim->second, row_outcome::preempted));
  ++counters_->preemptions;
  forget(victim);
  counters_->sequences = residents_.size();
}

/// Names the first `blocks` blocks, which the cache knows or is told of. It is told the names too, so that
/// each block of a sequence is hashed once.
void device_state::name(resident& which, std::size_t blocks) const {
  const auto known = which.names.size();
  if (blocks <= known)
    return;
  const auto parent = known == 0 ? hasher_.root(which.tenant) : which.names.back();
  which.names.resize(blocks);
  hasher_.chain(parent, std::span(which.tokens).subspan(known * page_tokens, (blocks - known) * page_tokens),
    std::span(which.names).subspan(known));
}

/// Hands the blocks that have become full to the cache. It may know nothing of a ragged sequence: whoever
/// found its pages would take an approximation for what the model computes.
void device_state::remember(resident& which) {
  if (which.kv.ragged())
    return;
  const std::size_t full = which.kv.length() / page_tokens;
  const auto told = which.names.size();
  if (full <= told)
    return;
  name(which, full);
  insert(which, told, full);
}

/// The same for all blocks of a sequence that goes: the cache may have kept another one's copy of some, and
/// given it up since.
void device_state::remember_all(const resident& which, bool swapped) {
  if (which.kv.ragged())
    return;
  if (!which.names.empty())
    insert(which, 0, which.names.size()).swapped = swapped;
}

cache_insertion& device_state::insert(const resident& which, std::size_t first, std::size_t end) {
  cache_insertion insertion;
  insertion.tenant = which.tenant;
  if (first > 0)
    insertion.parent = which.names[first - 1];
  const auto names = std::span(which.names).subspan(first, end - first);
  insertion.names.assign(names.begin(), names.end());
  const auto blocks = which.kv.blocks().subspan(first, end - first);
  insertion.blocks.assign(blocks.begin(), blocks.end());
  pool_->retain_blocks(blocks);
  return insertions_.emplace_back(std::move(insertion));
}

void device_state::forget(residents::iterator which) {
  freed_ = freed_ || which->second.kv.holds_pages();
  // Its blocks are free now, or only the cache holds them.
  cache_empty_ = false;
  residents_.erase(which);
}

row_result device_state::describe(sequence_key key, const resident& which, row_outcome outcome) const {
  row_result row;
  row.sequence = key;
  row.outcome = outcome;
  row.prompt = which.prompt;
  row.cached = which.cached.all;
  row.cached_host = which.cached.host;
  row.cached_disk = which.cached.disk;
  return row;
}

step_outcome device_state::run() {
  const auto start = clock::now();
  step_outcome out;
  out.result.step = ++step_;
  out.result.rows = std::exchange(preempted_, {});
  for (const auto role : {step_role::prefill, step_role::decode})
    out.told[static_cast<std::size_t>(role)] = !meeting_.rows(role).empty();
  meeting_.clear();

  for (const auto index : plan_.starved) {
    const auto key = candidates_[index].sequence;
    out.result.rows.push_back(describe(key, residents_.at(key), row_outcome::starved));
  }
  report_room(out.result);
  reserve(out.result);
  const auto starved = std::count_if(out.result.rows.begin(), out.result.rows.end(),
    [](const row_result& row) { return row.outcome == row_outcome::starved; });
  if (starved > 0) {
    counters_->starved_rows += static_cast<std::uint64_t>(starved);
    starving_ = true;
    freed_ = false;
  }
  compute(out.result);

  for (const auto& row : out.result.rows) {
    const bool ends_prompt = row.outcome == row_outcome::sampled || row.outcome == row_outcome::failed;
    if (row.prompt)
      out.told[static_cast<std::size_t>(step_role::prefill)] = true;
    if (!row.prompt || ends_prompt)
      out.told[static_cast<std::size_t>(step_role::decode)] = true;
  }
  for (const auto role : {step_role::prefill, step_role::decode})
    if (out.told[static_cast<std::size_t>(role)])
      meeting_.owe(role, step_);
  // The cache may have got something since.
  cache_empty_ = false;
  if (!plan_.rows.empty()) {
    const auto end = clock::now();
    learn_pace(end - start);
    count_step(start, end);
  }
  counters_->free_blocks = pool_->free_blocks();
  counters_->sequences = residents_.size();
  return out;
}

/// Rows that only asked for room are done: it is there, and whoever asked takes it another way.
void device_state::report_room(step_result& result) {
  std::erase_if(plan_.rows, [&](const planned_row& row) {
    const auto& candidate = candidates_[row.candidate];
    if (candidate.room_only)
      result.rows.push_back(
        describe(candidate.sequence, residents_.at(candidate.sequence), row_outcome::computed));
    return candidate.room_only;
  });
}

/// Takes the blocks that the plan counted on; a row drops out should somebody else have taken them.
void device_state::reserve(step_result& result) {
  std::erase_if(plan_.rows, [&](const planned_row& row) {
    const auto key = candidates_[row.candidate].sequence;
    auto& which = residents_.at(key);
    if (which.kv.reserve(which.ahead()))
      return false;
    result.rows.push_back(describe(key, which, row_outcome::starved));
    return true;
  });
}

void device_state::compute(step_result& result) {
  std::vector<chunk> chunks;
  std::size_t wanting = 0;
  for (const auto& row : plan_.rows) {
    auto& which = residents_.at(candidates_[row.candidate].sequence);
    const bool last = row.tokens == which.left();
    wanting += last ? 1 : 0;
    chunks.push_back({&which.kv, std::span(which.tokens).subspan(which.kv.length(), row.tokens),
      last ? logits_wanted::last : logits_wanted::none});
  }
  if (chunks.empty())
    return;
  const std::size_t width = model_->shape().vocabulary;
  try {
    logits_.resize(std::max(logits_.size(), wanting * width));
    const auto logits = std::span(logits_).first(wanting * width);
    model_->forward(chunks, logits);
    sample_rows(result, plan_.rows, logits);
  } catch (const std::exception& exception) {
    fail_step(result, exception.what());
  }
}

void device_state::sample_rows(
  step_result& result, std::span<const planned_row> rows, std::span<const float> logits) {
  const std::size_t width = model_->shape().vocabulary;
  std::vector<sampling_row> wanting;
  for (const auto& planned : rows) {
    const auto& which = residents_.at(candidates_[planned.candidate].sequence);
    if (which.left() == 0) {
      wanting.push_back({logits.subspan(wanting.size() * width, width), &which.sampling,
        static_cast<position_t>(which.tokens.size()), which.tokens, which.prompt_length});
    }
  }
  std::vector<sampled> chosen(wanting.size());
  sampler_.sample(wanting, chosen, model_->threads(),
    [&](std::size_t items, const row_sampler::job& job) { model_->share_out(items, job); });

  std::vector<row_result> done;
  auto next = chosen.begin();
  for (const auto& planned : rows) {
    const auto key = candidates_[planned.candidate].sequence;
    auto& which = residents_.at(key);
    auto row = describe(key, which, row_outcome::computed);
    row.computed = planned.tokens;
    if (which.prompt)
      counters_->prefilled_tokens += planned.tokens;
    if (which.left() == 0) {
      row.outcome = row_outcome::sampled;
      row.position = static_cast<position_t>(which.tokens.size());
      row.token = std::move(*next++);
      which.tokens.push_back(row.token.token);
      ++counters_->decoded_tokens;
    }
    // At once, so that others with the same beginning need not wait for the whole of this one.
    remember(which);
    which.prompt = which.prompt && row.outcome == row_outcome::computed;
    done.push_back(std::move(row));
  }
  result.rows.insert(
    result.rows.end(), std::make_move_iterator(done.begin()), std::make_move_iterator(done.end()));
}

/// After an exception nobody knows what the pages of the rows hold: their sequences end.
void device_state::fail_step(step_result& result, const std::string& why) {
  last_failure_ = why;
  for (const auto& planned : plan_.rows) {
    const auto key = candidates_[planned.candidate].sequence;
    const auto found = residents_.find(key);
    auto row = describe(key, found->second, row_outcome::failed);
    row.prompt = candidates_[planned.candidate].prompt;
    row.failure = {errc::internal, "the device could not compute this step", {}, {}};
    result.rows.push_back(std::move(row));
    forget(found);
  }
}

void device_state::learn_pace(clock::duration took) {
  std::uint32_t streams = 0;
  std::uint32_t prompt = 0;
  for (const auto& row : plan_.rows)
    (candidates_[row.candidate].prompt ? prompt : streams) += row.tokens;
  pace_.learn(streams, prompt, took);
  if (prompt > 0)
    count_prompts(streams, prompt, took);
}

/// What the prompts of a step took, for those who weigh computing against loading. They have grown already.
void device_state::count_prompts(std::uint32_t streams, std::uint32_t prompt, clock::duration took) {
  std::uint64_t work = 0;
  for (const auto& row : plan_.rows) {
    const auto& candidate = candidates_[row.candidate];
    const auto which = residents_.find(candidate.sequence);
    if (!candidate.prompt || which == residents_.end())
      continue;
    const std::uint64_t before = which->second.kv.length() - row.tokens;
    work += row.tokens + row.tokens * (before + row.tokens / 2) / work_doubles_at;
  }
  counters_->prompt_work += work;
  counters_->prompt_nanoseconds += nanoseconds(took) * prompt / (streams + prompt);
}

void device_state::count_step(clock::time_point start, clock::time_point end) {
  ++counters_->steps;
  counters_->step_nanoseconds += nanoseconds(end - start);
  counters_->last_step_nanoseconds = nanoseconds(end - start);
  if (!idle_) {
    ++counters_->pauses;
    counters_->pause_nanoseconds += nanoseconds(start - last_end_);
  }
  idle_ = false;
  last_end_ = end;
}

} // namespace godwit
