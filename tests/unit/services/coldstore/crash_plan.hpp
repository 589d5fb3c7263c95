#pragma once

#include "tests/unit/services/coldstore/texts.hpp"

#include <random>
#include <vector>

namespace godwit::test {

/// What the process that is killed writes, step by step: one batch each, always the same.
inline constexpr std::uint32_t crash_texts = 40;

inline text crash_text(std::uint32_t number) {
  return {number, 5 + number * 7 % 36};
}

/// A text, and up to which block it is written.
struct crash_step {
  std::uint32_t number = 0;
  std::size_t until = 0;
};

inline std::vector<crash_step> crash_steps(std::size_t count) {
  std::mt19937 random(77);
  std::vector<crash_step> made;
  for (std::size_t i = 0; i < count; ++i) {
    const auto number = static_cast<std::uint32_t>(random() % crash_texts);
    const std::size_t length = 5 + number * 7 % 36;
    made.push_back({number, 1 + random() % length});
  }
  return made;
}

} // namespace godwit::test
