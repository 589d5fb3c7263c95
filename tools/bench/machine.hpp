#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <string>

/// What the machine could do at most: the bounds that the speed of a model is compared with.
namespace godwit::bench {

/// Of all threads together, the best of several rounds.
struct machine_limits {
  std::string
    instructions; ///< that the products of 8-bit numbers use: "avx512vnni", "avx512", "avx2", "plain"
  std::uint32_t threads = 0;
  /// Multiplications and additions of 8-bit numbers with 32-bit sums: by VNNI, or by pairs (maddubs, madd).
  double int8_per_s = 0;
  double bytes_per_s = 0; ///< read from memory, each byte once
};

/// Takes about two seconds and 256 MiB.
/// @param implementation of the dispatch table, such as "cpu:avx2": its instructions; empty: the best
/// @param threads        0: one for each core
/// @returns `unsupported` for instructions that this machine lacks
result<machine_limits> measure_machine(const std::string& implementation, std::uint32_t threads);

} // namespace godwit::bench
