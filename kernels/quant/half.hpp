#pragma once

// Half precision and bfloat16 as 16-bit patterns. All four conversions are those of IEEE 754 and of the
// hardware's instructions: to nearest, ties to even; subnormal numbers are kept; a NaN stays one, made quiet.

#include <bit>
#include <cstdint>

namespace godwit {

/// The number of an IEEE half; exact.
constexpr float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t exponent = half >> 10 & 0x1fU;
  const std::uint32_t fraction = half & 0x3ffU;
  if (exponent == 0x1f) {
    const std::uint32_t quiet = fraction != 0 ? 0x400000U : 0;
    return std::bit_cast<float>(sign | 0x7f800000U | quiet | fraction << 13);
  }
  if (exponent == 0) {
    // fraction * 2^-24; both factors and the product are exact.
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

/// The half nearest to a number; infinity from 65520 on.
constexpr std::uint16_t float_to_half(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000U) {
    half = 0x7e00U | (magnitude >> 13 & 0x3ffU);
  } else if (magnitude >= 0x477ff000U) { // 65520
    half = 0x7c00U;
  } else if (magnitude < 0x38800000U) { // 2^-14: the result is subnormal
    // Adding one half puts the result's last bit at the sum's last bit, so that the addition rounds.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F)
           - std::bit_cast<std::uint32_t>(0.5F);
  } else {
    const std::uint32_t odd = magnitude >> 13 & 1U;
    half = (magnitude - ((127U - 15U) << 23) + 0xfffU + odd) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

/// The number of a bfloat16; exact.
constexpr float bf16_to_float(std::uint16_t brain) {
  const std::uint32_t quiet = (brain & 0x7fffU) > 0x7f80U ? 0x400000U : 0;
  return std::bit_cast<float>(std::uint32_t{brain} << 16 | quiet);
}

/// The bfloat16 nearest to a number.
constexpr std::uint16_t float_to_bf16(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  if ((bits & 0x7fffffffU) > 0x7f800000U)
    return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

} // namespace godwit
