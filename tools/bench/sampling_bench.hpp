#pragma once

#include "messages/result.hpp"
#include "tools/bench/model_bench.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace godwit::bench {

/// How long it takes to choose tokens in one way.
struct sampling_time {
  std::string name;   ///< of the settings: "top_p 0.9"
  double seconds = 0; ///< for the tokens of all rows of a step
};

struct sampling_rates {
  std::uint32_t rows = 0;
  double step_seconds = 0; ///< of the step that gave the logits
  std::vector<sampling_time> ways;
};

/// Measures the sampler on the logits of a step that decodes `rows` streams, each 128 tokens long with a last
/// token of its own. The threads of the step sample, as a node's do. Medians over rounds, in which the ways
/// take turns.
/// @returns what loading returns; `invalid_argument` for no rows or more than a step has
result<sampling_rates> sampling(const model_settings& settings, std::uint32_t rows);

} // namespace godwit::bench
