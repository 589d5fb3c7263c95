#pragma once

#include "kernels/memory/kv_layout.hpp"

#include <cstddef>

/// Pages of every type, number by number: what the other implementations have to write and read. The rounding
/// is the one that kernels/ops/cpu/kernels.hpp states.
namespace godwit::ops::reference {

/// Writes key and value of one position.
/// @param k, v `[head_dim]`
void store_position(
  const kv_shape& shape, const double* k, const double* v, std::byte* page, std::size_t slot);

/// A page's keys as singles, exact: `[head_dim, page_tokens]`.
/// @param room `[page_tokens * head_dim]`, where they are put unless the page holds singles
const float* load_keys(const kv_shape& shape, const std::byte* page, float* room);
/// The same for its values: `[page_tokens, head_dim]`.
const float* load_values(const kv_shape& shape, const std::byte* page, float* room);

} // namespace godwit::ops::reference
