#include "actors/session/token_stream.hpp"
#include "messages/text.hpp"

#include <algorithm>

namespace godwit {

result<void> token_stream::take(schema::TokenBatch::Reader batch, token_id vocabulary) {
  const auto tokens = batch.getTokens();
  if (ended_)
    return fail(errc::internal, "tokens came behind the end of a generation");
  if (tokens.size() > 0 && batch.getPosition() != first_ + pending_.size())
    return fail(errc::internal, "tokens of a generation are missing");
  if (tokens.size() > credit_)
    return fail(errc::internal, "tokens came without credit");
  for (const auto token : tokens)
    if (token.getToken() >= vocabulary)
      return fail(errc::internal, "a generation has tokens that the model does not have");
  credit_ -= tokens.size();
  for (const auto from : tokens) {
    sampled_token token{from.getToken(), from.getLogprob(), {}};
    for (const auto other : from.getTop())
      token.top.emplace_back(other.getToken(), other.getLogprob());
    pending_.push_back(std::move(token));
  }
  cached_ = std::max(cached_, batch.getCachedTokens());
  host_ = std::max(host_, batch.getCachedHost());
  disk_ = std::max(disk_, batch.getCachedDisk());
  if (batch.getFinish() != schema::FinishReason::NONE)
    end(batch);
  return {};
}

bool token_stream::orphan() {
  orphaned_ = true;
  if (ended_ || !accepted_)
    return false;
  ended_ = true;
  failure_ = {errc::peer_lost, "the worker of this generation is gone", {}, {}};
  return true;
}

void token_stream::end(schema::TokenBatch::Reader batch) {
  ended_ = true;
  switch (batch.getFinish()) {
  case schema::FinishReason::STOP:
    finish_ = "stop";
    break;
  case schema::FinishReason::LENGTH:
    finish_ = "length";
    break;
  case schema::FinishReason::FAILED:
    failure_ = {static_cast<errc>(batch.getErrorCode()), text_of(batch.getErrorMessage()), {}, {}};
    if (batch.getErrorCode() == 0)
      failure_ = {errc::internal, "the generation failed", {}, {}};
    break;
  default:
    failure_ = {errc::peer_lost, "the worker gave the generation up", {}, {}};
    break;
  }
}

std::uint32_t token_stream::committed(position_t position) {
  const auto count = std::min<std::size_t>(position > first_ ? position - first_ : 0, pending_.size());
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(count));
  first_ += static_cast<position_t>(count);
  return static_cast<std::uint32_t>(count);
}

} // namespace godwit
