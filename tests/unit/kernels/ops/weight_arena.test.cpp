#include "kernels/ops/cpu/weight_arena.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

using namespace godwit::ops::cpu;

TEST_CASE("what an arena gives is zero, at a cache line's boundary and nobody else's") {
  constexpr std::size_t most = std::size_t{70} << 20; // more than it takes from the system at a time
  weight_arena arena;
  std::vector<std::span<std::byte>> taken;
  std::uint8_t mark = 1;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{64}, std::size_t{65}, std::size_t{0}, most,
         std::size_t{345600}, std::size_t{30} << 20, std::size_t{40} << 20, std::size_t{3}}) {
    const auto part = arena.take(bytes);
    REQUIRE(part.size() == bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(part.data()) % 64 == 0);
    CHECK(std::ranges::all_of(part, [](std::byte byte) { return byte == std::byte{0}; }));
    std::ranges::fill(part, std::byte{mark++});
    taken.push_back(part);
  }
  // Each still holds its own mark: none was overwritten through another.
  mark = 1;
  for (const auto part : taken) {
    CHECK(std::ranges::all_of(part, [&](std::byte byte) { return byte == std::byte{mark}; }));
    ++mark;
  }
}
