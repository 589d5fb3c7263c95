// A million random operations each, in the release build. GODWIT_TEST_OPERATIONS is another number of them.

#include "tests/support/allocated_bytes.hpp"
#include "tests/support/asked_number.hpp"
#include "tests/unit/actors/cache/cache_world.hpp"
#include "tests/unit/actors/cache/tiers_history.hpp"

#include <catch2/catch.hpp>

#include <random>

using namespace godwit;
using namespace godwit::test;

TEST_CASE("a million random operations leave no memory and no page behind") {
  const auto operations = asked_number("GODWIT_TEST_OPERATIONS", 1'000'000);
  std::mt19937 dice(11);
  cache_world world;
  std::size_t before = 0;
  for (std::uint64_t i = 0; i < operations; ++i) {
    world.run({static_cast<std::uint32_t>(dice()), static_cast<std::uint32_t>(dice()),
      static_cast<std::uint32_t>(dice() % 65536)});
    if (i % 64 == 0)
      world.verify();
    if (i % (operations / 10) == operations / 20) {
      // Between two looks the world holds different sequences, of 28 blocks at most; their lists are small.
      const auto now = allocated_bytes();
      before = before == 0 ? now : before;
      WARN(i << " operations: " << now << " bytes");
      CHECK(now < before + (std::size_t{1} << 20U));
    }
  }
  world.end();
}

TEST_CASE("a million random operations on all tiers leave no memory behind") {
  const auto operations = static_cast<unsigned>(asked_number("GODWIT_TEST_OPERATIONS", 1'000'000));
  for (const std::uint32_t seed : {21U, 22U}) {
    std::size_t before = 0;
    static_cast<void>(tiers_history(seed, operations / 2, [&](unsigned i) {
      if (i % (operations / 20) != operations / 40)
        return;
      // The texts are few, so that the disk has all of them soon; requests and jobs come and go.
      const auto now = allocated_bytes();
      before = before == 0 ? now : before;
      WARN(i << " operations: " << now << " bytes");
      CHECK(now < before + (std::size_t{1} << 20U));
    }));
  }
}
