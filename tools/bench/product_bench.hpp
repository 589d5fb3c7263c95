#pragma once

#include "messages/result.hpp"
#include "tools/bench/model_bench.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace godwit::bench {

/// How long the matrix products of one step take.
struct product_rate {
  std::uint32_t rows = 0;
  double seconds = 0;
  double operations_per_s = 0; ///< multiplications and additions of the model
  double bytes_per_s = 0;      ///< of weights
};

/// Measures nothing but the products of a step, those for the logits of every row included: all matrices of
/// the model in their order, each cut between the threads.
/// @param rows sizes of steps, which take turns
/// @returns what opening the model returns; `invalid_argument` for no rows or more than 4,096;
///          `unsupported` for an implementation that packs no weights
result<std::vector<product_rate>> products(
  const model_settings& settings, std::span<const std::uint32_t> rows);

} // namespace godwit::bench
