#include "actors/cache/host_tier.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

using namespace godwit;

namespace {

constexpr std::size_t block_bytes = 64;

std::unique_ptr<host_tier> tier_of(std::uint32_t blocks) {
  return host_tier::create(block_bytes, blocks * block_bytes, 4096).value();
}

block_identity name(std::uint64_t number) {
  return {number * 7919, number};
}

/// Puts a block in, its content all of one byte.
bool put(host_tier& tier, std::uint64_t number, std::uint64_t parent) {
  const auto before = name(parent);
  const auto where = tier.reserve(name(number), parent == 0 ? nullptr : &before);
  if (where == host_tier::nowhere)
    return false;
  std::ranges::fill(tier.contents(where), static_cast<std::byte>(number));
  tier.filled(where);
  return true;
}

bool holds(host_tier& tier, std::uint64_t number) {
  const auto where = tier.find(name(number));
  return where != host_tier::nowhere && std::ranges::all_of(tier.contents(where), [&](std::byte value) {
    return value == static_cast<std::byte>(number);
  });
}

} // namespace

TEST_CASE("a budget that holds no block is refused with both numbers") {
  const auto made = host_tier::create(1000, 999, 4096);
  REQUIRE_FALSE(made);
  CHECK(made.error().code == errc::invalid_argument);
  CHECK(made.error().message.find("999") != std::string::npos);
  CHECK(made.error().message.find("1000") != std::string::npos);
  CHECK(made.error().param == "cache_host_bytes");
  CHECK(host_tier::create(1000, 3999, 4096).value()->capacity() == 3);
}

TEST_CASE("a chain is known as far as it is there and filled") {
  const auto tier = tier_of(4);
  REQUIRE(put(*tier, 1, 0));
  REQUIRE(put(*tier, 2, 1));
  const auto parent = name(2);
  const auto open = tier->reserve(name(3), &parent);
  const std::vector chain{name(1), name(2), name(3), name(4)};
  CHECK(tier->known(chain) == 2);
  CHECK(tier->has(name(3)));
  tier->filled(open);
  CHECK(tier->known(chain) == 3);
  CHECK(tier->bytes() == 3 * block_bytes);
}

TEST_CASE("a block without the one before it is not taken") {
  const auto tier = tier_of(4);
  CHECK_FALSE(put(*tier, 2, 1));
  CHECK(tier->size() == 0);
}

TEST_CASE(
  "the least worthy end of a chain goes for a new block, and never one that is held or just followed") {
  const auto tier = tier_of(3);
  REQUIRE(put(*tier, 1, 0));
  REQUIRE(put(*tier, 2, 0));
  REQUIRE(put(*tier, 3, 0));
  const std::vector one{name(1)};
  tier->asked(one);
  tier->hold(tier->find(name(2)));
  REQUIRE(put(*tier, 4, 0));
  CHECK(holds(*tier, 1));
  CHECK(holds(*tier, 2));
  CHECK_FALSE(tier->has(name(3)));
  CHECK(tier->evictions() == 1);
  // 2 is held and 4 is to be followed: 1 goes, though it was asked for.
  REQUIRE(put(*tier, 5, 4));
  CHECK_FALSE(tier->has(name(1)));
  // 4 has a block behind it now, 5 is what the next one follows.
  CHECK_FALSE(put(*tier, 6, 5));
  tier->let_go(tier->find(name(2)));
  CHECK(put(*tier, 6, 5));
  CHECK(holds(*tier, 4));
  CHECK(holds(*tier, 5));
  CHECK(holds(*tier, 6));
}

TEST_CASE("only an end that nobody holds can be forgotten") {
  const auto tier = tier_of(4);
  REQUIRE(put(*tier, 1, 0));
  REQUIRE(put(*tier, 2, 1));
  CHECK_FALSE(tier->erase(name(1)));
  CHECK_FALSE(tier->erase(name(9)));
  const auto where = tier->find(name(2));
  tier->hold(where);
  CHECK_FALSE(tier->erase(name(2)));
  tier->let_go(where);
  CHECK(tier->erase(name(2)));
  CHECK(tier->erase(name(1)));
  CHECK(tier->size() == 0);
  for (std::uint64_t i = 1; i <= 4; ++i)
    CHECK(put(*tier, i, 0));
}
