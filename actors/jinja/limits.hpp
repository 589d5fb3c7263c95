#pragma once

#include <cstddef>
#include <cstdint>

namespace godwit::jinja {

/// What a template, which comes with a model's file, may cost. Each is far above what real templates need.
struct limits {
  std::size_t source = std::size_t{1} << 20;   ///< bytes of a template
  std::size_t output = std::size_t{64} << 20;  ///< bytes of what it renders
  std::size_t memory = std::size_t{256} << 20; ///< bytes of the values that are alive while rendering
  std::uint64_t steps = 10'000'000; ///< expressions evaluated; long strings count one step each 64 bytes
  int nesting = 100;   ///< of tags and expressions in each other, and of lists and mappings in values
  int recursion = 400; ///< of expressions and tags while rendering, through calls of macros
};

} // namespace godwit::jinja
