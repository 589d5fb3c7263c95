#include "services/gateway/generation_tries.hpp"

#include <algorithm>

namespace godwit {

namespace {

using schema::FinishReason;

bool is_failure(FinishReason finish) {
  return finish == FinishReason::FAILED || finish == FinishReason::CANCELLED;
}

/// Nobody takes it at present; nothing was tried.
bool is_refusal(errc code) {
  return code == errc::unavailable || code == errc::draining || code == errc::overloaded
         || code == errc::resource_exhausted;
}

} // namespace

void generation_tries::begin(request_id request) {
  request_ = request;
  accepted_ = false;
  orphaned_ = false;
  next_.reset();
}

bool generation_tries::accept() {
  accepted_ = true;
  placed_ = true;
  return orphaned_;
}

bool generation_tries::orphan() {
  orphaned_ = true;
  return accepted_;
}

result<void> generation_tries::take(schema::TokenBatch::Reader batch, token_id vocabulary) {
  accepted_ = true;
  placed_ = true;
  if (is_failure(batch.getFinish()))
    return {};
  const auto tokens = batch.getTokens();
  if (tokens.size() > 0 && batch.getPosition() != prompt_ + tokens_.size())
    return fail(errc::internal, "tokens of a generation are missing");
  if (tokens.size() > remaining())
    return fail(errc::internal, "a generation has more tokens than were asked for");
  for (const auto token : tokens)
    if (token.getToken() >= vocabulary)
      return fail(errc::internal, "a generation has tokens that the model does not have");
  for (const auto token : tokens)
    tokens_.push_back(token.getToken());
  if (remaining() == 0 && batch.getFinish() == FinishReason::NONE)
    return fail(errc::internal, "a generation goes on behind its end");
  if (tokens.size() > 0) {
    failures_ = 0;
    since_.reset();
    pause_ = limits_.first_pause;
  }
  return {};
}

bool generation_tries::failed(errc why, time now) {
  const bool begun = accepted_;
  request_ = 0;
  // What a worker had begun, or perhaps had, is lost with it. Else nobody took it: the first time that is the
  // answer, but once it was begun somebody may come.
  const bool lost = why == errc::peer_lost || (begun && (why == errc::unavailable || why == errc::draining));
  const bool waits = since_ && !begun && is_refusal(why);
  if (!lost && !waits)
    return false;
  if (lost && ++failures_ >= limits_.attempts)
    return false;
  if (!since_)
    since_ = now;
  if (now + pause_ - *since_ > limits_.patience)
    return false;
  next_ = now + pause_;
  pause_ = std::min(2 * pause_, limits_.longest_pause);
  return true;
}

} // namespace godwit
