#include "kernels/sampling/philox.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

namespace {
using words = std::array<std::uint32_t, 4>;
} // namespace

TEST_CASE("Philox4x32-10 gives the known answers of the Random123 library") {
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff})
        == words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0})
        == words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a position's random number is the first 53 bits of its block") {
  // From the first known answer: 0x6627e8d5e169c58d / 2^64, cut to 53 bits.
  CHECK(uniform_at(0, 0) == static_cast<double>(0x6627e8d5e169c58dULL >> 11) / 9007199254740992.0);
  CHECK(uniform_at(0, 1) != uniform_at(0, 0));
  CHECK(uniform_at(std::uint64_t{1} << 32, 0) != uniform_at(0, 0));
}

TEST_CASE("random numbers of consecutive positions fill the unit interval evenly") {
  // Chi-square over 64 bins; 103.4 is its 0.999 quantile for 63 degrees of freedom.
  for (const std::uint64_t seed : {1ULL, 2ULL, 0xdeadbeefcafeULL}) {
    std::array<int, 64> bins{};
    constexpr int draws = 64'000;
    for (position_t p = 0; p < draws; ++p) {
      const double u = uniform_at(seed, p);
      REQUIRE(u >= 0);
      REQUIRE(u < 1);
      ++bins[static_cast<std::size_t>(u * 64)];
    }
    double chi = 0;
    for (const int count : bins)
      chi += (count - 1000.0) * (count - 1000.0) / 1000.0;
    CHECK(chi < 103.4);
  }
}
