#include "kernels/quant/half.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

using namespace godwit;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

std::uint32_t bits(float number) {
  return std::bit_cast<std::uint32_t>(number);
}

/// What IEEE 754 says that a finite half with the sign bit clear stands for.
double defined(std::uint16_t half) {
  const int exponent = half >> 10;
  const int fraction = half & 0x3ff;
  return exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
}

} // namespace

TEST_CASE("every half stands for the number that IEEE 754 defines") {
  for (std::uint32_t half = 0; half < 0x7c00; ++half) {
    const auto expected = static_cast<float>(defined(static_cast<std::uint16_t>(half)));
    REQUIRE(bits(half_to_float(static_cast<std::uint16_t>(half))) == bits(expected));
    REQUIRE(bits(half_to_float(static_cast<std::uint16_t>(half | 0x8000))) == bits(-expected));
  }
  CHECK(half_to_float(0x7c00) == infinity);
  CHECK(half_to_float(0xfc00) == -infinity);
  for (std::uint32_t half = 0x7c01; half < 0x8000; ++half) {
    REQUIRE(std::isnan(half_to_float(static_cast<std::uint16_t>(half))));
    REQUIRE(std::isnan(half_to_float(static_cast<std::uint16_t>(half | 0x8000))));
  }
}

TEST_CASE("every float goes to the nearest half, ties to the even one") {
  // Rounding changes only at the midpoints between neighbours: there and beside them everything is decided.
  for (std::uint32_t i = 0; i + 1 < 0x7c00; ++i) {
    const auto half = static_cast<std::uint16_t>(i);
    const auto next = static_cast<std::uint16_t>(i + 1);
    const auto middle = static_cast<float>((defined(half) + defined(next)) / 2);
    REQUIRE(float_to_half(half_to_float(half)) == half);
    REQUIRE(float_to_half(std::nextafter(middle, 0.0F)) == half);
    REQUIRE(float_to_half(middle) == (i % 2 == 0 ? half : next));
    REQUIRE(float_to_half(std::nextafter(middle, infinity)) == next);
    REQUIRE(float_to_half(-middle) == ((i % 2 == 0 ? half : next) | 0x8000));
  }
}

TEST_CASE("halves overflow to infinity and vanish to zero with their sign") {
  CHECK(float_to_half(65'504.0F) == 0x7bff);
  CHECK(float_to_half(std::nextafter(65'520.0F, 0.0F)) == 0x7bff);
  CHECK(float_to_half(65'520.0F) == 0x7c00);
  CHECK(float_to_half(-1e30F) == 0xfc00);
  CHECK(float_to_half(infinity) == 0x7c00);
  CHECK(float_to_half(1e-40F) == 0);
  CHECK(float_to_half(-1e-40F) == 0x8000);
  CHECK(float_to_half(-0.0F) == 0x8000);
  CHECK(std::isnan(half_to_float(float_to_half(std::numeric_limits<float>::quiet_NaN()))));
  // A NaN whose payload is only in the bits that are dropped must not become infinity.
  CHECK(std::isnan(half_to_float(float_to_half(std::bit_cast<float>(0x7f800001U)))));
}

TEST_CASE("bfloat16 is the upper half of a float, rounded to nearest even") {
  for (std::uint32_t i = 0; i < 0x7f80; ++i) {
    const auto brain = static_cast<std::uint16_t>(i);
    const auto next = static_cast<std::uint16_t>(i + 1);
    REQUIRE(bits(bf16_to_float(brain)) == i << 16);
    REQUIRE(float_to_bf16(bf16_to_float(brain)) == brain);
    REQUIRE(float_to_bf16(std::bit_cast<float>((i << 16) + 0x7fff)) == brain);
    REQUIRE(float_to_bf16(std::bit_cast<float>((i << 16) + 0x8000)) == (i % 2 == 0 ? brain : next));
    REQUIRE(float_to_bf16(std::bit_cast<float>((i << 16) + 0x8001)) == next);
    REQUIRE(float_to_bf16(-std::bit_cast<float>((i << 16) + 0x8001)) == (next | 0x8000));
  }
  CHECK(float_to_bf16(infinity) == 0x7f80);
  CHECK(std::isnan(bf16_to_float(float_to_bf16(std::bit_cast<float>(0x7f800001U)))));
  CHECK(std::isnan(bf16_to_float(float_to_bf16(std::bit_cast<float>(0xffffffffU)))));
}
