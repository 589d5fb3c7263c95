#include "kernels/ops/rope.hpp"

#include <catch2/catch.hpp>

#include <cmath>

using namespace godwit::ops;

TEST_CASE("sines and cosines are those of the C library to a part in 10^15") {
  double worst = 0;
  const auto check = [&](double angle) {
    const turn made = turn_by(angle);
    // In extended precision, so that the reference adds no error of its own.
    const auto exact = static_cast<long double>(angle);
    worst = std::max({worst, static_cast<double>(std::abs(made.cosine - std::cos(exact))),
      static_cast<double>(std::abs(made.sine - std::sin(exact)))});
  };
  for (int i = 0; i < 100'000; ++i) {
    check(i);                 // the first pair of every head
    check(i * 1e-4);          // a slow one
    check(-i * 0.7853981634); // near multiples of pi / 4
    check(i * 10.48575);      // up to 2^20
  }
  CHECK(worst < 1e-15);
}

TEST_CASE("frequencies fall from one by equal ratios") {
  const auto made = rope_frequencies(8, 10000);
  REQUIRE(made.size() == 4);
  CHECK(made[0] == 1);
  CHECK(made[1] == Approx(0.1));
  CHECK(made[2] == Approx(0.01));
  CHECK(made[3] == Approx(0.001));
}

TEST_CASE("a turn is exact for every position of the longest context") {
  // Against powers, sines and cosines of the C library in extended precision.
  for (const double base : {10000.0, 500000.0, 1e6}) {
    const auto made = rope_frequencies(128, base);
    for (std::uint32_t i = 0; i < 64; ++i) {
      const long double exact = std::pow(static_cast<long double>(base), -2.0L * i / 128);
      REQUIRE(std::abs(made[i] - static_cast<double>(exact)) <= 1e-14 * made[i]);
      for (std::uint32_t position = i; position < (1U << 20U); position += 4099) {
        const turn turned = turn_by(position * made[i]);
        // Half of what a float holds is the most that rounding the table may cost.
        REQUIRE(std::abs(turned.cosine - static_cast<double>(std::cos(position * exact))) < 1e-8);
        REQUIRE(std::abs(turned.sine - static_cast<double>(std::sin(position * exact))) < 1e-8);
      }
    }
  }
}

TEST_CASE("YaRN keeps fast pairs, divides slow ones by the factor, and grows the turns") {
  const auto plain = rope_frequencies(64, 10000);
  const auto made = yarn_rope(64, 10000, {.factor = 4, .original = 4096});
  CHECK(made.magnitude == Approx(1 + 0.1 * std::log(4.0)));
  for (std::size_t i = 0; i < 32; ++i) {
    const double turns = plain[i] * 4096 / 6.28318530717958647692;
    CHECK(made.frequencies[i] <= plain[i]);
    CHECK(made.frequencies[i] >= plain[i] / 4);
    // One pair beyond either end, since the ends are rounded outwards to whole pairs.
    if (turns > 32 * 1.4) {
      CHECK(made.frequencies[i] == plain[i]);
    }
    if (turns < 1 / 1.4) {
      CHECK(made.frequencies[i] == Approx(plain[i] / 4));
    }
  }
}
