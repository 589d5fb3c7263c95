#include "actors/prefill/request_check.hpp"

#include "actors/device/step_letters.hpp"
#include "kernels/sampling/settings.hpp"

#include <string>

namespace godwit {
result<void> check_request(schema::GenerateRequest::Reader ask, const request_limits& limits) {
  const auto tokens = ask.getTokens();
  const auto prompt = ask.getPromptLength();
  if (tokens.size() == 0)
    return fail(errc::invalid_argument, "a generation needs at least one token to go on from", "tokens");
  if (prompt == 0 || prompt > tokens.size())
    return fail(errc::invalid_argument, "the prompt's length does not fit its tokens", "promptLength");
  for (const auto token : tokens)
    if (token >= limits.vocabulary)
      return fail(errc::invalid_argument, "a token is outside the vocabulary", "tokens");
  if (prompt >= limits.context)
    return fail(errc::invalid_argument,
      "the prompt has " + std::to_string(prompt) + " tokens, and the model's context holds "
        + std::to_string(limits.context) + " with at least one of the answer",
      "messages", "context_length_exceeded");
  if (prompt >= limits.pool_tokens)
    return fail(errc::invalid_argument,
      "the prompt needs KV pages for " + std::to_string(prompt + 1) + " tokens, and this node has them for "
        + std::to_string(limits.pool_tokens),
      "messages", "kv_capacity_exceeded");
  return validate(read_sampling(ask.getSampling()), limits.vocabulary);
}

} // namespace godwit
