#pragma once

#include "messages/ids.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace godwit {

/// How a token is chosen from logits. Together with the tokens before a position this decides the token
/// there.
struct sampling_settings {
  float temperature = 1.0F; ///< 0 takes the greatest logit, the lowest id among equals
  std::uint32_t top_k = 0;  ///< 0 is off
  float top_p = 1.0F;       ///< 1 is off
  float min_p = 0.0F;       ///< 0 is off
  float repeat_penalty =
    1.0F; ///< logits of tokens in the window: divided if positive, else multiplied; 1 is off
  float frequency_penalty = 0; ///< times the count among generated tokens, subtracted (OpenAI)
  float presence_penalty = 0;  ///< once for every generated token, subtracted (OpenAI)
  std::uint32_t penalty_window = 64;
  std::uint64_t seed = 0;
  std::vector<std::pair<token_id, float>> bias; ///< added to the logit
  std::uint8_t top_logprobs = 0;
  bool logprobs = false;
};

/// Checks settings from outside against a model's vocabulary.
/// @returns `invalid_argument` with the API's name of the field that is at fault: temperature finite and not
/// negative, top_p in (0, 1], min_p in [0, 1], repeat_penalty finite and above 0, frequency_penalty and
/// presence_penalty in [-2, 2], every logit_bias for a token of the vocabulary and in [-100, 100],
/// top_logprobs at most 20
result<void> validate(const sampling_settings& settings, std::uint32_t vocabulary);

} // namespace godwit
