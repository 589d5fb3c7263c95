#pragma once

#include "kernels/gguf/tensor_type.hpp"

#include <cstddef>
#include <span>

namespace godwit {

/// Turns one row (or any whole number of blocks) into floats as ggml defines them. Every product of scales
/// and quants has at most 24 significant bits and so is exact; the one addition of types with a minimum is
/// rounded once. The result therefore is the same bits on every machine, with or without fused multiply-add.
/// @param bytes the row's blocks, of any alignment
/// @param out   `[n]`
/// @pre n is a multiple of block_elements(type); bytes.size() == n / block_elements(type) * block_bytes(type)
void dequantize_row(gguf::tensor_type type, std::span<const std::byte> bytes, float* out, std::size_t n);

/// The same without that rounding: the numbers that the blocks stand for (the sums fit a double, but for
/// scales that are more than 2^29 apart).
void dequantize_row(gguf::tensor_type type, std::span<const std::byte> bytes, double* out, std::size_t n);

} // namespace godwit
