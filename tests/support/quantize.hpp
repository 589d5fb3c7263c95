#pragma once

// Weights for tests: floats to blocks with ggml's simple (not importance-weighted) quantizers, bit for bit
// those of its Python package, and random blocks of any type.

#include "kernels/gguf/tensor_type.hpp"
#include "kernels/quant/blocks.hpp"
#include "kernels/quant/half.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

namespace godwit {
namespace detail {

/// The element of greatest magnitude, with its sign; the first among equals.
inline float greatest(std::span<const float> numbers) {
  return *std::ranges::max_element(numbers, {}, [](float x) { return std::abs(x); });
}

inline float reciprocal(float d) {
  return d == 0 ? 0 : 1 / d;
}

inline std::uint8_t clamped(float q, int most) {
  return static_cast<std::uint8_t>(std::clamp(static_cast<int>(q), 0, most));
}

/// Quants of types without a minimum: around `half`, the greatest magnitude at quant 0.
inline float centred(std::span<const float> x, int half, std::uint8_t (&q)[32]) {
  const float d = greatest(x) / static_cast<float>(-half);
  const float inverse = reciprocal(d);
  for (std::size_t i = 0; i < 32; ++i)
    q[i] = clamped(x[i] * inverse + (static_cast<float>(half) + 0.5F), 2 * half - 1);
  return d;
}

/// Quants of types with a minimum: from it on. @returns the step
inline float shifted(std::span<const float> x, int most, std::uint8_t (&q)[32]) {
  const auto [low, high] = std::ranges::minmax(x);
  const float d = (high - low) / static_cast<float>(most);
  const float inverse = reciprocal(d);
  for (std::size_t i = 0; i < 32; ++i)
    q[i] = clamped((x[i] - low) * inverse + 0.5F, most);
  return d;
}

template <class Block>
void pack_low(const std::uint8_t (&q)[32], Block& block) {
  for (std::size_t i = 0; i < 16; ++i)
    block.qs[i] = static_cast<std::uint8_t>((q[i] & 15U) | (q[i + 16] & 15U) << 4);
}

template <class Block>
void pack_fifth(const std::uint8_t (&q)[32], Block& block) {
  std::fill(std::begin(block.qh), std::end(block.qh), std::uint8_t{0});
  for (std::size_t i = 0; i < 32; ++i)
    block.qh[i / 8] = static_cast<std::uint8_t>(block.qh[i / 8] | (q[i] >> 4) << (i % 8));
}

inline void quantize_block(std::span<const float> x, block_q4_0& block) {
  std::uint8_t q[32];
  block.d = float_to_half(centred(x, 8, q));
  pack_low(q, block);
}

inline void quantize_block(std::span<const float> x, block_q4_1& block) {
  std::uint8_t q[32];
  block.d = float_to_half(shifted(x, 15, q));
  block.m = float_to_half(std::ranges::min(x));
  pack_low(q, block);
}

inline void quantize_block(std::span<const float> x, block_q5_0& block) {
  std::uint8_t q[32];
  block.d = float_to_half(centred(x, 16, q));
  pack_low(q, block);
  pack_fifth(q, block);
}

inline void quantize_block(std::span<const float> x, block_q5_1& block) {
  std::uint8_t q[32];
  block.d = float_to_half(shifted(x, 31, q));
  block.m = float_to_half(std::ranges::min(x));
  pack_low(q, block);
  pack_fifth(q, block);
}

inline void quantize_block(std::span<const float> x, block_q8_0& block) {
  const float d = std::abs(greatest(x)) / 127;
  const float inverse = reciprocal(d);
  block.d = float_to_half(d);
  for (std::size_t i = 0; i < 32; ++i)
    block.qs[i] = static_cast<std::int8_t>(std::round(x[i] * inverse)); // halves away from zero
}

template <class Stored>
void append_bytes(std::vector<std::byte>& to, const Stored& stored) {
  const auto bytes = std::as_bytes(std::span(&stored, 1));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

template <class Block>
std::vector<std::byte> quantize_all(std::span<const float> numbers) {
  std::vector<std::byte> out;
  for (std::size_t i = 0; i < numbers.size(); i += 32) {
    Block block;
    quantize_block(numbers.subspan(i, 32), block);
    append_bytes(out, block);
  }
  return out;
}

} // namespace detail

/// The bytes of a tensor of `type`: F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1 or Q8_0.
/// @pre numbers.size() is a multiple of block_elements(type)
inline std::vector<std::byte> quantize(gguf::tensor_type type, std::span<const float> numbers) {
  using gguf::tensor_type;
  std::vector<std::byte> out;
  switch (type) {
  case tensor_type::f32:
    for (const auto number : numbers)
      detail::append_bytes(out, number);
    return out;
  case tensor_type::f16:
    for (const auto number : numbers)
      detail::append_bytes(out, float_to_half(number));
    return out;
  case tensor_type::bf16:
    for (const auto number : numbers)
      detail::append_bytes(out, float_to_bf16(number));
    return out;
  case tensor_type::q4_0:
    return detail::quantize_all<block_q4_0>(numbers);
  case tensor_type::q4_1:
    return detail::quantize_all<block_q4_1>(numbers);
  case tensor_type::q5_0:
    return detail::quantize_all<block_q5_0>(numbers);
  case tensor_type::q5_1:
    return detail::quantize_all<block_q5_1>(numbers);
  case tensor_type::q8_0:
    return detail::quantize_all<block_q8_0>(numbers);
  default:
    throw std::invalid_argument("no test quantizer for this type: use random_blocks");
  }
}

/// The bytes of `n` random weights of any type: quants of all values, scales such that weights are of the
/// order of `size`. Depends on the seed only.
inline std::vector<std::byte> random_blocks(
  gguf::tensor_type type, std::size_t n, std::uint32_t seed, float size = 0.1F) {
  using gguf::tensor_type;
  std::mt19937 random(seed);
  // In [-1, 1), from the engine's bits: the library's distributions differ between implementations.
  const auto uniform = [&] { return static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-31F; };
  const auto blocks = n / gguf::block_elements(type);
  const auto block_size = gguf::block_bytes(type);
  if (gguf::block_elements(type) == 1) {
    std::vector<float> numbers(n);
    std::ranges::generate(numbers, [&] { return size * uniform(); });
    return quantize(type, numbers);
  }

  std::vector<std::byte> out(blocks * block_size);
  std::ranges::generate(out, [&] { return static_cast<std::byte>(random() & 0xffU); });
  const auto put = [&](std::size_t block, std::size_t offset, float scale) {
    const auto half = float_to_half(scale);
    std::memcpy(out.data() + block * block_size + offset, &half, sizeof half);
  };
  for (std::size_t b = 0; b < blocks; ++b)
    switch (type) {
    case tensor_type::q4_1:
    case tensor_type::q5_1: {
      const float steps = type == tensor_type::q4_1 ? 15 : 31;
      put(b, 0, 2 * size / steps * (1 + uniform() / 4));
      put(b, 2, -size * (1 + uniform() / 4));
      break;
    }
    case tensor_type::q4_k:
    case tensor_type::q5_k: {
      const float steps = type == tensor_type::q4_k ? 15 : 31;
      put(b, 0, 4 * size / (steps * 63) * (1 + uniform() / 4));
      put(b, 2, 2 * size / 63 * (1 + uniform() / 4));
      break;
    }
    case tensor_type::q6_k:
      put(b, 208, size / (32 * 64) * (1 + uniform() / 4));
      break;
    case tensor_type::q4_0:
      put(b, 0, size / 8 * (1 + uniform() / 4));
      break;
    case tensor_type::q5_0:
      put(b, 0, size / 16 * (1 + uniform() / 4));
      break;
    default:
      put(b, 0, size / 127 * (1 + uniform() / 4));
    }
  return out;
}

} // namespace godwit
