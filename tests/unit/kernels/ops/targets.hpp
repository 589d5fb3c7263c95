#pragma once

#include "kernels/ops/cpu/kernels.hpp"

#include <cstdint>
#include <random>
#include <vector>

namespace godwit {

/// The compiled targets that this machine can run.
inline std::vector<ops::cpu::kernel_table> targets_here() {
  std::vector<ops::cpu::kernel_table> here;
  for (const auto& target : ops::cpu::compiled_targets()) {
    if (ops::cpu::runs_here(target)) {
      here.push_back(target);
    }
  }
  return here;
}

/// Numbers in [-size, size), the same on every machine.
inline std::vector<float> random_floats(std::size_t count, std::uint32_t seed, float size = 1) {
  std::mt19937 random{seed};
  std::vector<float> made(count);
  for (auto& number : made) {
    number = size * static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-31F;
  }
  return made;
}

} // namespace godwit
