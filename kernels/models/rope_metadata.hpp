#pragma once

#include "kernels/models/transformer_form.hpp"

namespace godwit {

/// Adds the rotary positions that `rope.freq_base` and `rope.scaling.*` describe, as llama.cpp understands
/// them: no scaling, linear (positions divided by a factor), YaRN; and the divisors of single frequencies
/// that Llama 3's files have as the tensor `rope_freqs.weight`. Anything else is refused by name.
/// @returns the index of what was added
std::uint32_t add_rope(metadata& from, transformer_form& form, double default_base);

/// Adds positions without any scaling. @returns the index of what was added
std::uint32_t add_plain_rope(transformer_form& form, double base);

/// The bounds of a base.
inline constexpr double least_rope_base = 2;
inline constexpr double most_rope_base = 1e12;

} // namespace godwit
