#pragma once

#include <cstddef>
#include <span>

// Passes over a whole vocabulary as vector code, with the same bits on every instruction set.
namespace godwit::vocabulary {

/// Tokens that are summed up and searched together; a vocabulary has `blocks_of` of them, the last perhaps
/// short.
inline constexpr std::size_t block = 256;

constexpr std::size_t blocks_of(std::size_t tokens) {
  return (tokens + block - 1) / block;
}

/// Copies logits; a NaN becomes minus infinity, plus infinity the greatest float.
/// @param out      `[tokens]`
/// @param greatest `[blocks_of(tokens)]`, the greatest of each block
void tame(std::span<const float> logits, float* out, float* greatest);

/// weight = exp_nonpositive((logit - greatest) / temperature), and 0 where that is below `least`.
/// @param logits   tame, none above `greatest`
/// @param weights  `[tokens]`
/// @param sums     `[blocks_of(tokens)]`, the sum of each block's weights in double: eight partial sums, of
/// every
///                 eighth weight, added as a tree
void weigh(std::span<const float> logits, float greatest, float temperature, float least, float* weights,
  double* sums);

} // namespace godwit::vocabulary
