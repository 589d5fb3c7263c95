#pragma once

#include "kernels/sampling/sampler.hpp"
#include "kernels/sampling/vocabulary.hpp"

#include <optional>
#include <span>

// Steps 8 to 10 of `sample` over a whole vocabulary with a top_p below 1. What they give is defined by sums
// in a stated order. Nearly always no order of a sum decides anything: then the token is found by estimates
// of all weights, of which only those that may stay are computed exactly.
namespace godwit::detail {

/// What is known of the sum of all weights.
struct weight_sum {
  double value = 0;
  double error = 0; ///< by how much of itself it may be wrong
};

/// Estimates all weights into scratch memory.
weight_sum estimate_weights(
  std::span<const float> logits, const vocabulary::weighing& how, sampler_scratch& scratch);

/// Computes them, and the sums of blocks.
weight_sum compute_weights(
  std::span<const float> logits, const vocabulary::weighing& how, sampler_scratch& scratch);

/// By sums in any order, of the weights that may stay.
/// @param how     weighs; what scratch holds was made with it
/// @param whole   of all weights, which are in scratch memory
/// @param random  from [0, 1)
/// @returns the token, or nothing where an error of a sum might decide
std::optional<token_id> draw_likely(std::span<const float> logits, const vocabulary::weighing& how,
  const weight_sum& whole, const sampling_settings& settings, double random, sampler_scratch& scratch);

/// By sums in their order. Scratch memory holds what compute_weights left there.
token_id draw_likely_in_order(std::span<const float> logits, const vocabulary::weighing& how,
  const sampling_settings& settings, double random, sampler_scratch& scratch);

} // namespace godwit::detail
