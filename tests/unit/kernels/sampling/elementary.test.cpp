#include "kernels/sampling/elementary.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>
#include <limits>
#include <vector>

using namespace godwit;

TEST_CASE("exp is the C library's to a few units in the last place") {
  for (float x = 0; x > -87; x -= 0.0003F) {
    const double expected = std::exp(static_cast<double>(x));
    REQUIRE(std::abs(static_cast<double>(exp_nonpositive(x)) - expected) <= 2e-7 * expected);
  }
  CHECK(exp_nonpositive(0.0F) == 1.0F);
  CHECK(exp_nonpositive(-0.0F) == 1.0F);
  CHECK(exp_nonpositive(-88.0F) == 0.0F);
  CHECK(exp_nonpositive(-std::numeric_limits<float>::infinity()) == 0.0F);
}

TEST_CASE("exp has the bits that numpy computes by the same steps") {
  std::ifstream file(GODWIT_SOURCE_DIR "/tests/golden/sampling/exp.txt");
  REQUIRE(file.good());
  std::vector<float> inputs;
  std::vector<std::uint32_t> expected;
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  while (file >> std::hex >> x >> y) {
    inputs.push_back(std::bit_cast<float>(x));
    expected.push_back(y);
  }
  REQUIRE(inputs.size() == 408);
  // In a loop over an array, which an optimising compiler turns into vector code.
  std::vector<float> outputs(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    outputs[i] = exp_nonpositive(inputs[i]);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    REQUIRE(std::bit_cast<std::uint32_t>(outputs[i]) == expected[i]);
}

TEST_CASE("exp rises with its argument") {
  float previous = 0;
  for (float x = -87.5F; x <= 0; x += 0.001F) {
    const float y = exp_nonpositive(x);
    REQUIRE(y >= previous);
    previous = y;
  }
}

TEST_CASE("the logarithm is the C library's") {
  for (double x = 1e-300; x < 1e300; x *= 1.37) {
    const double expected = std::log(x);
    REQUIRE(std::abs(natural_log(x) - expected) <= 1e-15 * std::abs(expected));
  }
  for (double x = 0.5; x < 2.5; x += 0.00037)
    REQUIRE(std::abs(natural_log(x) - std::log(x)) <= 4e-16);
  CHECK(natural_log(1.0) == 0.0);
}
