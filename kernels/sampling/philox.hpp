#pragma once

#include "messages/ids.hpp"

#include <array>
#include <cstdint>

namespace godwit {

/// Philox4x32-10: 128 random bits that are a pure function of counter and key. Source: Salmon, Moraes, Dror
/// and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011); equal to the Random123 library.
constexpr std::array<std::uint32_t, 4> philox4x32(
  std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xd2511f53} * counter[0];
    const std::uint64_t second = std::uint64_t{0xcd9e8d57} * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0],
      static_cast<std::uint32_t>(second), static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1],
      static_cast<std::uint32_t>(first)};
    key[0] += 0x9e3779b9U;
    key[1] += 0xbb67ae85U;
  }
  return counter;
}

/// The random number in [0, 1) of a position: 53 bits, whatever was drawn before or elsewhere. The counter is
/// {position, 0, 0, 0}; its other words are kept for other uses of randomness at the same position.
constexpr double uniform_at(std::uint64_t seed, position_t position) {
  const auto words = philox4x32(
    {position, 0, 0, 0}, {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  const auto bits = std::uint64_t{words[0]} << 32 | words[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

} // namespace godwit
