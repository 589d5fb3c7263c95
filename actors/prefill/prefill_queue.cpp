#include "actors/prefill/prefill_queue.hpp"

#include "messages/check.hpp"

#include <algorithm>
#include <utility>

namespace godwit {
namespace {

/// Tokens that another prompt must be about to compute for it to be worth waiting for.
constexpr std::size_t worthwhile_tokens = std::size_t{4} * page_tokens;

} // namespace

result<void> prefill_queue::accept(letter<schema::GenerateRequest> ask) {
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
  ++counts_[static_cast<std::size_t>(fresh.at)];
  prompts_.emplace(request, std::move(fresh));
  return {};
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
    if (active() >= limits_.active || active() + count(stage::handed) >= limits_.sequences
        || behind_a_blocked_one(which))
      break;
    if (waits_for_twin(which))
      continue;
    move(which, stage::looking);
    which.asked = now;
    questions.push_back({item->first, &which.tenant, &which.tokens});
  }
  return questions;
}

/// Nobody overtakes a prompt that waits for pages, or the pages would never be enough for it.
bool prefill_queue::behind_a_blocked_one(const prompt& which) const {
  return std::any_of(prompts_.begin(), prompts_.end(), [&](const auto& item) {
    return item.second.at == stage::active && item.second.blocked && item.second.order.before(which.order);
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
    const auto there = other.at == stage::looking ? 0 : other.tokens.size() - other.left;
    return shared >= there + worthwhile_tokens;
  });
}

bool prefill_queue::found(request_id request, std::vector<block_id> blocks) {
  const auto item = prompts_.find(request);
  if (item == prompts_.end() || item->second.at != stage::looking)
    return false;
  auto& which = item->second;
  GODWIT_CHECK(blocks.size() * page_tokens < which.tokens.size());
  which.left = static_cast<std::uint32_t>(which.tokens.size() - blocks.size() * page_tokens);
  which.cached = std::move(blocks);
  which.blocked = false;
  move(which, stage::ready);
  return true;
}

void prefill_queue::expire(clock::time_point since) {
  for (auto& [request, which] : prompts_)
    if (which.at == stage::looking && which.asked < since)
      found(request, {});
}

prefill_wishes prefill_queue::wishes() {
  prefill_wishes out;
  for (auto* item : by_rank(stage::ready)) {
    auto& which = item->second;
    out.openings.push_back(
      {which.ask, which.tokens, which.order.arrival, std::exchange(which.cached, {}), which.cached_at_most});
    move(which, stage::active);
  }
  for (auto* item : by_rank(stage::active))
    if (!item->second.blocked)
      out.rows.push_back({item->first, std::min(item->second.left, limits_.offer)});
  return out;
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
      which.left -= std::min(which.left, row.computed);
      break;
    case row_outcome::sampled:
      if (!std::exchange(which.first_token, true))
        cached_tokens_ += std::min(row.cached, which.prompt_length);
      move(which, stage::handed);
      done.push_back(item->first);
      break;
    case row_outcome::starved:
      which.blocked = true;
      break;
    case row_outcome::preempted:
      which.cached_at_most = std::min(which.cached_at_most, row.cached);
      move(which, stage::queued);
      break;
    case row_outcome::failed:
      move(which, stage::handed);
      break;
    }
  }
  return done;
}

void prefill_queue::unblock() {
  for (auto& [request, which] : prompts_)
    which.blocked = false;
}

dropped_prompt prefill_queue::leave(prompt& which) {
  dropped_prompt out;
  out.known = true;
  out.close = which.at == stage::active;
  out.unused = std::exchange(which.cached, {});
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
