#pragma once

#include "messages/error.hpp"
#include "messages/letter.hpp"
#include "messages/schemas/generation.capnp.h"
#include "tests/support/toy_model.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace godwit {

/// What a toy worker did at once.
struct toy_step {
  position_t position = 0;
  std::vector<token_id> tokens;
  schema::FinishReason finish = schema::FinishReason::NONE;
};

/// A generation at a toy worker.
struct toy_generation {
  std::vector<token_id> tokens; ///< prompt and all that was generated
  std::uint32_t left = 0;
  std::uint32_t credit = 0;
  std::uint64_t seed = 0;
  bool ended = false;

  toy_generation() = default;
  explicit toy_generation(schema::GenerateRequest::Reader request)
    : left(request.getMaxTokens()), credit(request.getCredit()), seed(request.getSampling().getSeed()) {
    for (const auto token : request.getTokens())
      tokens.push_back(token);
  }

  /// Goes on as far as credit and `most` allow. @returns nothing if it cannot
  std::optional<toy_step> go_on(std::size_t most) {
    if (ended || credit == 0)
      return std::nullopt;
    toy_step step{static_cast<position_t>(tokens.size()), {}, schema::FinishReason::NONE};
    while (step.tokens.size() < most && credit > 0 && step.finish == schema::FinishReason::NONE) {
      tokens.push_back(toy_next(seed, tokens));
      step.tokens.push_back(tokens.back());
      --credit;
      --left;
      if (tokens.back() == toy_text::end)
        step.finish = schema::FinishReason::STOP;
      else if (left == 0)
        step.finish = schema::FinishReason::LENGTH;
    }
    ended = step.finish != schema::FinishReason::NONE;
    return step;
  }
};

/// What a worker tells of a step; of why it failed if that is how it finished.
inline letter<schema::TokenBatch> toy_batch(request_id request, const toy_step& step, const error& why = {}) {
  return letter<schema::TokenBatch>::make([&](schema::TokenBatch::Builder b) {
    b.setRequest(request);
    b.setPosition(step.position);
    auto list = b.initTokens(static_cast<unsigned>(step.tokens.size()));
    for (unsigned i = 0; i < step.tokens.size(); ++i)
      list[i].setToken(step.tokens[i]);
    b.setFinish(step.finish);
    if (step.finish == schema::FinishReason::FAILED) {
      b.setErrorCode(static_cast<std::uint8_t>(why.code));
      b.setErrorMessage(why.message);
    }
  });
}

} // namespace godwit
