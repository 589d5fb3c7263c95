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

/// False for temperatures whose inverse is no use, and where infinities may be among the logits.
constexpr bool can_estimate(const weighing& how) {
  return how.temperature >= 0x1p-100F && how.temperature <= 0x1p100F && how.greatest < 0x1p127F;
}

/// About the weights, in a fraction of the time: each is within 2^-14 of it in proportion, whatever `least`
/// is.
/// @pre can_estimate(how)
/// @param weights `[tokens]`
/// @returns about their sum, see estimate_error
double estimate(std::span<const float> logits, const weighing& how, float* weights);

/// By how much of itself that sum may be wrong, for up to 2^24 tokens. In units of 2^-24: 4 of exp in
/// elementary.hpp, 4 of the estimated one, 3 of sums of eight in single precision; and errors of its
/// argument, as many times as that is large. On the average over the sum it is at most 13, since weights
/// further below the greatest are nothing beside it, however many there are: 3 units more of the constant,
/// and 26 where the quotients of both may be neighbours.
constexpr double estimate_error(const weighing& how) {
  return how.temperature == 1.0F ? 0x1p-20 : 0x3p-20;
}

/// About the sum of the weights of at least `least`; to find the place where an exact sum is worth its time.
/// @param most as above
float guess_sum(std::span<const float> weights, std::span<const float> most, float least);

/// Where the sum of the greatest weights may reach a goal.
struct border {
  float least = 0; ///< weights from this on
  float above = 0; ///< and from this on; above `least`
};

/// The places of numbers from a limit on and below the other, ascending.
/// @param most   of each block, no less than any of its numbers that counts; blocks where it is below `least`
/// are not read
/// @param limits `above` may be NaN: then there is no other
/// @param found  `[tokens]`
/// @returns how many
std::size_t find(
  std::span<const float> numbers, std::span<const float> most, border limits, std::uint32_t* found);

/// A value of each token whose weight is at least `least`, by ascending id.
/// @param most   as above
/// @param least  above 0
/// @param values `[tokens]`
/// @param bits   `[blocks_of(tokens) * block / 64]`, one for each token, the first in the lowest place: set
/// for those
/// @param kept   `[tokens + 16]`
/// @returns how many
std::size_t gather(std::span<const float> weights, std::span<const float> most, float least,
  std::span<const float> values, std::uint64_t* bits, float* kept);

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
