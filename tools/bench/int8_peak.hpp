#pragma once

#include <cstdint>
#include <string_view>

namespace godwit::bench {

/// A loop of nothing but products of 8-bit numbers, in as many chains as hide their latency.
struct int8_peak {
  std::string_view name;
  std::uint64_t operations = 0; ///< multiplications and additions of one repeat
  /// @returns something that depends on all sums, so that none is left out
  std::uint64_t (*run)(std::uint64_t repeats) = nullptr;
};

/// The loop for the instructions of an implementation ("cpu:avx2") that this machine has.
int8_peak int8_peak_for(std::string_view implementation);

} // namespace godwit::bench
