#pragma once

#include <cstddef>
#include <cstdint>
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

/// About the sum of the weights of at least `least`; to find the place where an exact sum is worth its time.
/// @param greatest `[blocks_of(tokens)]`, no less than any weight of the block
float guess_sum(std::span<const float> weights, std::span<const float> greatest, float least);

/// Where the sum of the greatest weights may reach a goal.
struct border {
  float least = 0; ///< weights from this on
  float above = 0; ///< and from this on; above `least`
};

/// Sums of the weights of each block that are not below the two limits, in the order of `weigh`: with zeros
/// for those that are. A sum never falls when a limit does.
/// @param greatest   as above
/// @param from_least `[blocks_of(tokens)]`
/// @param from_above the same
/// @param between    `[tokens]`, the tokens between the two limits by ascending id
/// @returns how many those are
std::size_t sums_from(std::span<const float> weights, std::span<const float> greatest, border limits,
  double* from_least, double* from_above, std::uint32_t* between);

} // namespace godwit::vocabulary
