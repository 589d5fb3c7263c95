#include "actors/prefill/prefill_queue.hpp"

#include "messages/check.hpp"

#include <algorithm>
#include <utility>

namespace godwit {
namespace {

/// Tokens that another prompt must be about to compute for it to be worth waiting for.
constexpr std::size_t worthwhile_tokens = std::size_t{4} * page_tokens;

} // namespace

result<void> prefill_queue::accept(letter<schema::GenerateRequest> ask, bool held) {
  const auto request = ask.read().getRequest();
  if (known(request))
    return fail(errc::conflict, "a generation of this id is running", "request");
  if (queued() >= limits_.queued)
    return fail(errc::overloaded, "too many requests wait for their turn: try again later");
  prompt fresh;
  fresh.order = {ask.read().getPriority(), ++arrivals_};
  fresh.tenant = ask.read().getTenant().cStr();
  fresh.tokens = read_ids(ask.read().getTokens());
  fresh.prompt_length = ask.read().getPromptLength();
  fresh.ask = std::move(ask);
  fresh.at = held ? stage::held : stage::queued;
  ++counts_[static_cast<std::size_t>(fresh.at)];
  prompts_.emplace(request, std::move(fresh));
  return {};
}

void prefill_queue::proceed(request_id request) {
  const auto item = prompts_.find(request);
  if (item != prompts_.end() && item->second.at == stage::held)
    move(item->second, stage::queued);
}

void prefill_queue::move(prompt& which, stage to) {
  --counts_[static_cast<std::size_t>(which.at)];
  ++counts_[static_cast<std::size_t>(to)];
  which.at = to;
}

std::vector<prefill_queue::prompts::value_type*> prefill_queue::by_rank(stage at) {
  std::vector<prompts::value_type*> found;
  for (auto& item : prompts_)
    if (item.second.at == at)
      found.push_back(&item);
  std::sort(found.begin(), found.end(),
    [](const auto* a, const auto* b) { return a->second.order.before(b->second.order); });
  return found;
}

std::vector<prefix_question> prefill_queue::begin(clock::time_point now) {
  std::vector<prefix_question> questions;
  if (queued() == 0)
    return questions;
  for (auto* item : by_rank(stage::queued)) {
    auto& which = item->second;
    if (active() >= limits_.active || active() + count(stage::handed) >= limits_.sequences || which.blocked
        || behind_a_blocked_one(which))
      break;
    if (waits_for_twin(which))
      continue;
    move(which, stage::looking);
    which.asked = now;
    which.host = which.disk = which.waiting = 0;
    questions.push_back({item->first, &which.tenant, &which.tokens});
  }
  return questions;
}

/// Nobody overtakes a prompt that waits for pages, or the pages would never be enough for it.
bool prefill_queue::behind_a_blocked_one(const prompt& which) const {
  return std::any_of(prompts_.begin(), prompts_.end(), [&](const auto& item) {
    const bool waits = item.second.at == stage::active || item.second.at == stage::queued;
    return waits && item.second.blocked && item.second.order.before(which.order);
  });
}

bool prefill_queue::waits_for_twin(const prompt& which) const {
  return std::any_of(prompts_.begin(), prompts_.end(), [&](const auto& item) {
    const auto& other = item.second;
    const bool computes = other.at == stage::looking || other.at == stage::ready || other.at == stage::active;
    if (!computes || other.blocked || other.tenant != which.tenant)
      return false;
    const auto differs =
      std::mismatch(which.tokens.begin(), which.tokens.end(), other.tokens.begin(), other.tokens.end());
    const auto shared =
      static_cast<std::size_t>(differs.first - which.tokens.begin()) / page_tokens * page_tokens;
    const auto reached = other.at == stage::looking ? 0 : there(other);
    return shared >= reached + worthwhile_tokens;
  });
}

bool prefill_queue::answer(request_id request, const prefix_answer& what, clock::time_point now) {
  const auto item = prompts_.find(request);
  if (item == prompts_.end())
    return false;
  auto& which = item->second;
  if (which.tail.coming && what.first * page_tokens == which.tail.at) {
    which.tail.coming = false;
    which.tail.blocks = what.blocks;
    return true;
  }
  if (which.at != stage::looking || which.cached.size() != what.first)
    return false;
  which.cached.insert(which.cached.end(), what.blocks.begin(), what.blocks.end());
  which.host += what.host * page_tokens;
  which.disk += what.disk * page_tokens;
  which.waiting = what.waiting;
  GODWIT_CHECK(which.cached.size() * page_tokens < which.tokens.size() && what.tail <= what.loading);
  if (what.tail > 0) {
    const auto end = static_cast<std::uint32_t>(which.cached.size()) + what.loading + what.gap;
    GODWIT_CHECK(what.gap > 0 && std::size_t{end} * page_tokens < which.tokens.size());
    which.tail = {(end - what.tail) * page_tokens, true, {}, now + what.patience};
  }
  // What was computed for it counts as computed, wherever that was.
  if (what.fresh > 0)
    which.cached_at_most = std::min(which.cached_at_most,
      static_cast<std::uint32_t>(which.cached.size() - std::min<std::size_t>(what.fresh, which.cached.size()))
        * page_tokens);
  // What comes behind a gap is not waited for here.
  which.loading = what.elsewhere > 0 || (!which.loading && what.loading > what.tail);
  if (which.loading)
    which.until = now + what.patience;
  else
    ready(which);
  return true;
}

void prefill_queue::ready(prompt& which) {
  which.left = static_cast<std::uint32_t>(which.tokens.size() - which.cached.size() * page_tokens);
  which.blocked = false;
  which.loading = false;
  which.begun = false;
  move(which, stage::ready);
}

std::vector<request_id> prefill_queue::expire(clock::time_point since, clock::time_point now) {
  std::vector<request_id> forgone;
  for (auto& [request, which] : prompts_) {
    if (which.at == stage::active && which.tail.coming && there(which) == which.tail.at
        && which.tail.until <= now) {
      which.tail.coming = false;
      forgone.push_back(request);
    }
    if (which.at != stage::looking)
      continue;
    if (which.loading ? which.until > now : which.asked >= since)
      continue;
    if (which.loading) {
      // That ends what is brought behind it too.
      unused_.insert(unused_.end(), which.tail.blocks.begin(), which.tail.blocks.end());
      which.tail = {};
      forgone.push_back(request);
    }
    ready(which);
  }
  return forgone;
}

bool prefill_queue::looking_up() const {
  return count(stage::looking) > 0 || std::any_of(prompts_.begin(), prompts_.end(), [](const auto& item) {
    return item.second.tail.coming;
  });
}

prefill_wishes prefill_queue::wishes() {
  prefill_wishes out;
  for (auto* item : by_rank(stage::ready)) {
    auto& which = item->second;
    out.openings.push_back({which.ask, which.tokens, which.order.arrival, std::exchange(which.cached, {}),
      which.cached_at_most, which.host, which.disk, which.tail.at});
    move(which, stage::active);
  }
  for (auto* item : by_rank(stage::active))
    if (!item->second.blocked)
      offer(*item, out);
  return out;
}

void prefill_queue::offer(prompts::value_type& item, prefill_wishes& out) const {
  auto& which = item.second;
  auto& tail = which.tail;
  auto most = std::min(which.left, limits_.offer);
  if (tail.at > 0) {
    const auto gap = tail.at - there(which);
    if (tail.coming && gap == 0)
      return;
    if (gap == 0 || (!tail.coming && tail.blocks.empty())) {
      which.left -= static_cast<std::uint32_t>(tail.blocks.size() * page_tokens);
      out.fillings.push_back({item.first, tail.at, std::move(tail.blocks)});
      tail = {};
      most = std::min(which.left, limits_.offer);
    } else {
      most = std::min(most, gap);
    }
  }
  out.rows.push_back({item.first, wants_room(which) ? room_only : most});
}

std::vector<request_id> prefill_queue::take(const step_result& result) {
  std::vector<request_id> done;
  for (const auto& row : result.rows) {
    const auto item = prompts_.find(row.sequence);
    if (item == prompts_.end() || item->second.at != stage::active || !row.prompt)
      continue;
    auto& which = item->second;
    switch (row.outcome) {
    case row_outcome::computed:
      if (wants_room(which)) {
        which.room_made = true;
        look_up_again(*item);
        break;
      }
      which.left -= std::min(which.left, row.computed);
      which.begun = true;
      break;
    case row_outcome::sampled:
      if (!std::exchange(which.first_token, true))
        count(row.found().first(which.prompt_length));
      move(which, stage::handed);
      done.push_back(item->first);
      break;
    case row_outcome::starved:
      which.blocked = true;
      // What it waits for holds pages, which others may need to go on.
      give_up(*item);
      if (which.waiting > 0 && !which.begun)
        look_up_again(*item);
      break;
    case row_outcome::preempted:
      which.cached_at_most = std::min(which.cached_at_most, row.cached);
      which.blocked = which.room_made = false;
      give_up(*item);
      which.tail = {};
      move(which, stage::queued);
      break;
    case row_outcome::failed:
      give_up(*item);
      which.tail = {};
      move(which, stage::handed);
      break;
    }
  }
  return done;
}

/// Lower tiers have blocks of it, and the device has not made room for them yet.
bool prefill_queue::wants_room(const prompt& which) {
  return which.waiting > 0 && !which.begun && !which.room_made;
}

/// It computes what was being brought for it.
void prefill_queue::give_up(prompts::value_type& item) {
  auto& tail = item.second.tail;
  if (std::exchange(tail.coming, false))
    forgone_.push_back(item.first);
  unused_.insert(unused_.end(), tail.blocks.begin(), tail.blocks.end());
  tail.blocks.clear();
}

void prefill_queue::look_up_again(prompts::value_type& item) {
  closing_.push_back(item.first);
  move(item.second, stage::queued);
}

void prefill_queue::count(const found_tokens& found) {
  cached_tokens_.all += found.all;
  cached_tokens_.host += found.host;
  cached_tokens_.disk += found.disk;
}

void prefill_queue::unblock() {
  for (auto& [request, which] : prompts_)
    which.blocked = false;
}

dropped_prompt prefill_queue::leave(prompt& which) {
  dropped_prompt out;
  out.known = true;
  out.close = which.at == stage::active;
  out.forgo = std::exchange(which.loading, false) || which.tail.coming;
  out.unused = std::exchange(which.cached, {});
  out.unused.insert(out.unused.end(), which.tail.blocks.begin(), which.tail.blocks.end());
  which.tail = {};
  move(which, stage::handed);
  return out;
}

dropped_prompt prefill_queue::drop(request_id request) {
  const auto item = prompts_.find(request);
  if (item == prompts_.end())
    return {};
  // What decode runs is to end as well.
  auto& which = item->second;
  const bool decoding = which.at == stage::handed && !which.dropped;
  auto out = leave(which);
  out.close = out.close || decoding;
  which.dropped = true;
  return out;
}

void prefill_queue::recompute(request_id request, std::vector<token_id> tokens) {
  const auto item = prompts_.find(request);
  if (item == prompts_.end())
    return;
  GODWIT_CHECK(item->second.at == stage::handed);
  // Decode had not heard of it when it asked.
  if (item->second.dropped)
    return;
  item->second.tokens = std::move(tokens);
  item->second.blocked = item->second.room_made = false;
  move(item->second, stage::queued);
}

dropped_prompt prefill_queue::ended(request_id request) {
  const auto item = prompts_.find(request);
  if (item == prompts_.end())
    return {};
  auto out = leave(item->second);
  --counts_[static_cast<std::size_t>(stage::handed)];
  prompts_.erase(item);
  return out;
}

std::vector<request_id> prefill_queue::all() const {
  std::vector<request_id> ids;
  for (const auto& item : prompts_)
    ids.push_back(item.first);
  return ids;
}

} // namespace godwit
