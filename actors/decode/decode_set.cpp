#include "actors/decode/decode_set.hpp"

#include "actors/device/step_letters.hpp"

#include <algorithm>
#include <utility>

namespace godwit {
namespace {

using schema::EndCause;
using schema::FinishReason;

/// An end that the consumer asked for is a cancel; every other one is a failure that says what it was.
std::pair<FinishReason, error> end_of(EndCause cause) {
  switch (cause) {
  case EndCause::DEADLINE:
    return {FinishReason::FAILED, {errc::deadline, "the time for this generation is over", {}, {}}};
  case EndCause::PEER_LOST:
    return {FinishReason::FAILED,
      {errc::peer_lost, "the router or the consumer of this generation is gone", {}, {}}};
  case EndCause::DRAINING:
    return {FinishReason::FAILED, {errc::draining, "this node is shutting down", {}, {}}};
  case EndCause::OVERLOADED:
    return {
      FinishReason::FAILED, {errc::overloaded, "this node has too much to do: try again later", {}, {}}};
  default:
    return {FinishReason::CANCELLED, {}};
  }
}

} // namespace

decode_actions decode_set::announce(const letter<schema::GenerateRequest>& ask) {
  decode_actions out;
  stream fresh;
  fresh.ask = ask;
  fresh.stops = read_ids(ask.read().getStopTokens());
  fresh.credit = ask.read().getCredit();
  const auto item = streams_.insert_or_assign(ask.read().getRequest(), std::move(fresh)).first;
  if (ask.read().getMaxTokens() == 0 || item->second.length() >= longest_)
    finish(item, FinishReason::LENGTH, {}, out);
  return out;
}

decode_actions decode_set::grant(request_id request, std::uint32_t tokens) {
  decode_actions out;
  const auto item = streams_.find(request);
  if (item == streams_.end())
    return out;
  auto& which = item->second;
  which.credit += tokens;
  const bool parked = which.at == stage::parked;
  send_held(item, out);
  if (parked && which.credit > 0)
    lose(item, out);
  return out;
}

decode_actions decode_set::cancel(std::span<const request_id> requests, EndCause cause) {
  decode_actions out;
  for (const auto request : requests)
    if (const auto item = streams_.find(request); item != streams_.end()) {
      auto [why, failure] = end_of(cause);
      finish(item, why, std::move(failure), out);
    }
  return out;
}

decode_actions decode_set::fail_all(const error& failure) {
  decode_actions out;
  while (!streams_.empty())
    finish(streams_.begin(), FinishReason::FAILED, failure, out);
  return out;
}

decode_actions decode_set::take(const step_result& result) {
  decode_actions out;
  for (const auto& row : result.rows) {
    const auto item = streams_.find(row.sequence);
    if (item == streams_.end()) {
      // It ended while the step ran.
      if (row.outcome == row_outcome::sampled)
        out.close.push_back(row.sequence);
      continue;
    }
    auto& which = item->second;
    switch (row.outcome) {
    case row_outcome::computed:
      break;
    case row_outcome::sampled:
      if (which.at != stage::complete)
        add_token(item, row, out);
      break;
    case row_outcome::starved:
      which.blocked = which.at == stage::running;
      break;
    case row_outcome::preempted:
      // Prefill starts its own prompts again by itself.
      if (!row.prompt && which.at == stage::running)
        lose(item, out);
      break;
    case row_outcome::failed:
      finish(item, FinishReason::FAILED, row.failure, out);
      break;
    }
  }
  return out;
}

void decode_set::unblock() {
  for (auto& [request, which] : streams_)
    which.blocked = false;
}

std::vector<row_offer> decode_set::rows() const {
  std::vector<row_offer> out;
  for (const auto& [request, which] : streams_)
    if (which.at == stage::running && !which.blocked && which.credit > 0)
      out.push_back({request, 1});
  return out;
}

FinishReason decode_set::finish_after(const stream& which, token_id token) const {
  const auto ask = which.ask.read();
  if (!ask.getIgnoreEnd() && vocabulary_->is_end(token))
    return FinishReason::STOP;
  if (std::find(which.stops.begin(), which.stops.end(), token) != which.stops.end())
    return FinishReason::STOP;
  if (which.generated.size() >= ask.getMaxTokens() || which.length() >= longest_)
    return FinishReason::LENGTH;
  return FinishReason::NONE;
}

void decode_set::add_token(streams::iterator item, const row_result& row, decode_actions& out) {
  auto& which = item->second;
  which.at = stage::running;
  which.blocked = false;
  if (!std::exchange(which.counted, true)) {
    which.cached = row.found().first(which.ask.read().getPromptLength());
    out.prefilled.push_back(item->first);
  }
  which.generated.push_back(row.token.token);
  which.held = row.token;
  which.finish = finish_after(which, row.token.token);
  if (which.finish != FinishReason::NONE) {
    which.at = stage::complete;
    out.close.push_back(item->first);
  }
  send_held(item, out);
}

/// Sends the token that waits, if the consumer takes it.
void decode_set::send_held(streams::iterator item, decode_actions& out) {
  auto& which = item->second;
  if (!which.held || which.credit == 0)
    return;
  if (which.at == stage::complete) {
    finish(item, which.finish, {}, out);
    return;
  }
  auto batch = batch_of(item);
  batch.tokens.push_back(std::move(*which.held));
  batch.usage = !std::exchange(which.told, true);
  which.held.reset();
  --which.credit;
  ++released_tokens_;
  out.batches.push_back(std::move(batch));
}

/// The pages of a stream are gone. It asks for them again when it may send.
void decode_set::lose(streams::iterator item, decode_actions& out) {
  auto& which = item->second;
  if (which.credit == 0) {
    which.at = stage::parked;
    return;
  }
  which.at = stage::prompting;
  which.blocked = false;
  auto tokens = read_ids(which.ask.read().getTokens());
  tokens.insert(tokens.end(), which.generated.begin(), which.generated.end());
  out.lost.push_back({item->first, std::move(tokens)});
}

void decode_set::finish(streams::iterator item, FinishReason why, error failure, decode_actions& out) {
  auto& which = item->second;
  auto batch = batch_of(item);
  if (which.at == stage::complete && (why == FinishReason::STOP || why == FinishReason::LENGTH)) {
    batch.tokens.push_back(std::move(*which.held));
    ++released_tokens_;
  }
  batch.finish = why;
  batch.failure = std::move(failure);
  batch.usage = true;
  if (which.at == stage::running)
    out.close.push_back(item->first);
  out.batches.push_back(std::move(batch));
  out.ended.push_back(item->first);
  streams_.erase(item);
}

token_batch decode_set::batch_of(streams::iterator item) const {
  const auto& which = item->second;
  token_batch batch;
  batch.request = item->first;
  batch.position = which.length() - (which.held ? 1 : 0);
  batch.prompt_tokens = which.ask.read().getPromptLength();
  batch.cached_tokens = which.cached.all;
  batch.cached_host = which.cached.host;
  batch.cached_disk = which.cached.disk;
  return batch;
}

} // namespace godwit
