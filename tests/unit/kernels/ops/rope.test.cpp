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
