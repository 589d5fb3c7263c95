#pragma once

// What the files of the sampler share: the order of tokens, their buckets, and the last step, the walk.

#include "kernels/sampling/sampler.hpp"
#include "kernels/sampling/vocabulary.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

namespace godwit::detail {

using candidate = sampler_scratch::candidate;

inline constexpr float infinity = std::numeric_limits<float>::infinity();

/// No NaN, no plus infinity.
inline float tamed(float logit) {
  return logit == logit ? std::min(logit, std::numeric_limits<float>::max()) : -infinity;
}

/// Greatest logit first, lowest id among equals: a total order, so every sort gives the same.
inline bool before(const candidate& a, const candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

/// The leading 17 bits of a weight's value: 128 buckets for every power of two, in the order of the weights.
inline std::size_t bucket_of(float weight) {
  return std::bit_cast<std::uint32_t>(weight) >> 16;
}

template <class Number>
std::span<Number> block_of(std::span<Number> all, std::size_t block) {
  const auto start = block * vocabulary::block;
  return all.subspan(start, std::min(vocabulary::block, all.size() - start));
}

inline double sum_of(std::span<const double> sums) {
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

/// Fills the greatest weight of each block from its greatest logit, which has no smaller weight than the
/// others.
inline void weigh_greatest(const vocabulary::weighing& how, sampler_scratch& scratch) {
  scratch.block_weights.resize(scratch.block_greatest.size());
  scratch.few_sums.resize(vocabulary::blocks_of(scratch.block_greatest.size()));
  vocabulary::weigh(scratch.block_greatest, how, scratch.block_weights.data(), scratch.few_sums.data());
}

/// Step 10 over [begin, end): the first at which the sum of the weights, counted from `sum`, exceeds the
/// target; else the last that has a weight.
template <class Iterator, class WeightOf>
Iterator walk(Iterator begin, Iterator end, double sum, double target, WeightOf weight_of) {
  auto last = begin;
  for (auto i = begin; i != end; ++i) {
    const float weight = weight_of(*i);
    sum += static_cast<double>(weight);
    if (sum > target)
      return i;
    last = weight > 0 ? i : last;
  }
  return last;
}

/// Step 10 over the whole vocabulary, whose blocks have sums.
/// @param whole     the sum of the blocks
/// @param weights_of gives the weights of a block
template <class WeightsOf>
token_id walk_blocks(double whole, double random, const std::vector<double>& sums, WeightsOf weights_of) {
  const double target = random * whole;
  double before_block = 0;
  double sum = 0;
  std::size_t chosen = 0; // the last that has a weight, unless one is found
  for (std::size_t block = 0; block < sums.size() && sum <= target; ++block) {
    if (sums[block] > 0) {
      chosen = block;
      before_block = sum;
      sum += sums[block];
    }
  }
  const std::span<const float> weights = weights_of(chosen);
  const auto found =
    walk(weights.begin(), weights.end(), before_block, target, [](float weight) { return weight; });
  return static_cast<token_id>(chosen * vocabulary::block) + static_cast<token_id>(found - weights.begin());
}

} // namespace godwit::detail
