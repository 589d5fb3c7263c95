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

/// The greatest logit of each block. A NaN counts as minus infinity, plus infinity as the greatest float; so
/// they do everywhere below.
/// @param greatest `[blocks_of(tokens)]`
void greatest_of(std::span<const float> logits, float* greatest);

/// How a logit becomes a weight: exp_nonpositive((logit - greatest) / temperature), and 0 where that is below
/// `least`.
struct weighing {
  float greatest = 0; ///< of all logits; finite
  float temperature = 1;
  float least = 0;
};

/// The weights, and the sum of each block's in double: eight partial sums, of every eighth weight, added as a
/// tree.
/// @param weights `[tokens]`
/// @param sums    `[blocks_of(tokens)]`
void weigh(std::span<const float> logits, const weighing& how, float* weights, double* sums);

/// The same sums alone; blocks without a weight of `least` are not read.
/// @param most `[blocks_of(tokens)]`, no less than any weight of the block
void sum(std::span<const float> logits, std::span<const float> most, const weighing& how, double* sums);

/// About the sum of the weights of at least `least`; to find the place where an exact sum is worth its time.
/// @param most as above
float guess_sum(std::span<const float> weights, std::span<const float> most, float least);

/// Where the sum of the greatest weights may reach a goal.
struct border {
  float least = 0; ///< weights from this on
  float above = 0; ///< and from this on; above `least`
};

/// The sum of one block's weights that are not below `least`, in the order of `weigh`: with zeros for those
/// that are. A sum never falls when the limit does.
/// @param weights at most `block`
/// @param least   above 0
double sum_from(std::span<const float> weights, float least);

/// The same of each block, for two limits.
/// @param most       as above
/// @param from_least `[blocks_of(tokens)]`
/// @param from_above the same
/// @param between    `[tokens]`, the tokens between the two limits by ascending id
/// @returns how many those are
std::size_t sums_from(std::span<const float> weights, std::span<const float> most, border limits,
  double* from_least, double* from_above, std::uint32_t* between);

} // namespace godwit::vocabulary
