#pragma once

#include "kernels/sampling/settings.hpp"
#include "services/api/field_reader.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace godwit {

/// How an answer is to be made: what a chat completion and a session's `sampling` have in common.
struct sampling_choice {
  sampling_settings settings;
  bool seeded = false;          ///< a seed was given; else one is drawn
  std::uint32_t max_tokens = 0; ///< 0 is as many as the context holds
  std::vector<std::string> stop;
};

/// Reads temperature, top_p, top_k, min_p, repeat_penalty, frequency_penalty, presence_penalty, seed,
/// logit_bias, max_tokens and stop.
/// @param vocabulary number of tokens; logit_bias names ids below it
/// @param unnamed what holds for the fields that are not there
sampling_choice read_sampling(field_reader& fields, token_id vocabulary, const sampling_settings& unnamed);

/// Most strings that `stop` may have, and most bytes of each.
constexpr std::size_t max_stop_strings = 16;
constexpr std::size_t max_stop_bytes = 1'024;

} // namespace godwit
