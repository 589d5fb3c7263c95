#include "actors/cache/block_index.hpp"

#include "tests/support/asked_number.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <bit>
#include <map>
#include <random>
#include <set>

using namespace godwit;

namespace {

constexpr auto none = block_index::none;

/// Identities of which many share their low bits, so that their places in the table collide.
block_identity crowded(std::uint64_t number) {
  return {number % 7, number};
}

block_identity spread(std::uint64_t number) {
  return {number * 0x9e3779b97f4a7c15U, number};
}

block_index::slot add_one(block_index& index, std::uint64_t number, block_index::slot parent) {
  const auto which = index.add(spread(number), static_cast<std::uint32_t>(number), parent);
  index.added(which);
  return which;
}

std::vector<std::uint32_t> order_of_eviction(block_index& index) {
  std::vector<std::uint32_t> order;
  for (auto which = index.worst(); which != none; which = index.worst()) {
    order.push_back(index[which].where);
    index.give_up(which);
  }
  return order;
}

} // namespace

TEST_CASE("blocks are found after any history, by their whole identity") {
  std::mt19937 dice(1);
  block_index index;
  std::map<std::uint64_t, block_index::slot> expected;
  for (int round = 0; round < 20000; ++round) {
    const std::uint64_t number = dice() % 300;
    const auto known = expected.find(number);
    REQUIRE(index.find(crowded(number)) == (known == expected.end() ? none : known->second));
    if (known != expected.end()) {
      index.erase(known->second);
      expected.erase(known);
    } else {
      expected[number] = index.add(crowded(number), 0, none);
      index.added(expected[number]);
    }
    REQUIRE(index.size() == expected.size());
  }
}

TEST_CASE("of blocks that nobody asked for, the oldest goes first") {
  block_index index;
  for (std::uint32_t i = 0; i < 5; ++i)
    add_one(index, i, none);
  CHECK(order_of_eviction(index) == std::vector<std::uint32_t>{0, 1, 2, 3, 4});
}

TEST_CASE("a block that was asked for more often stays longer, but not for ever") {
  block_index index;
  const auto popular = add_one(index, 0, none);
  for (int i = 0; i < 3; ++i) {
    index.visit(popular);
    index.visited(popular);
  }
  // With three hits the first one is worth four. Those that come later are worth one more than the last that
  // went: 1 1 2 2 3 3 4 4, since two of them are there at a time. At 4 the one unused for longest goes.
  std::vector<std::uint32_t> gone;
  for (std::uint32_t i = 1; i <= 10; ++i) {
    add_one(index, i, none);
    if (i >= 2) {
      const auto which = index.worst();
      gone.push_back(index[which].where);
      index.give_up(which);
    }
  }
  // Ages grow by one with each that goes: 1, 2, 3, and 4 is a tie, in which the longest unused one goes.
  CHECK(gone == std::vector<std::uint32_t>{1, 2, 3, 4, 5, 6, 0, 7, 8});
}

TEST_CASE("of two chains the one that costs more to compute again stays longer") {
  block_index index(16);
  auto last = none;
  for (std::uint32_t i = 0; i < 4; ++i)
    last = index.add(spread(i), i, last);
  index.added(last);
  for (std::uint32_t i = 10; i < 12; ++i)
    add_one(index, i, none);
  // The fourth block of the long chain costs four times what a first one does.
  const auto order = order_of_eviction(index);
  CHECK(order[0] == 10);
  CHECK(order[1] == 11);
  CHECK(order[2] == 3);
}

TEST_CASE("a block never goes before those behind it, and is as recent as they are") {
  block_index index;
  const auto root = add_one(index, 0, none);
  add_one(index, 1, none);
  auto end = root;
  for (std::uint32_t i = 2; i < 5; ++i)
    end = add_one(index, i, end);
  // Block 0 is the oldest, but the chain on it came after block 1.
  CHECK(order_of_eviction(index) == std::vector<std::uint32_t>{1, 4, 3, 2, 0});
}

TEST_CASE("a pin holds a block and those before it, blocks of two pins are counted once") {
  block_index index;
  auto last = none;
  std::vector<block_index::slot> chain;
  for (std::uint32_t i = 0; i < 6; ++i)
    chain.push_back(last = index.add(spread(i), i, last));
  index.added(last);
  CHECK(index.unpinned_before(chain[3]) == 4);
  CHECK(index.pin(chain[3]) == 4);
  CHECK(index.unpinned_before(chain[1]) == 0);
  CHECK(index.pin(chain[1]) == 0);
  CHECK(index.unpinned_before(chain[5]) == 2);
  CHECK(order_of_eviction(index) == std::vector<std::uint32_t>{5, 4});
  CHECK(index.unpin(chain[3]) == 2);
  CHECK(order_of_eviction(index) == std::vector<std::uint32_t>{3, 2});
  CHECK(index.unpin(chain[1]) == 2);
  CHECK(order_of_eviction(index) == std::vector<std::uint32_t>{1, 0});
}

TEST_CASE("more pins than a block can count are refused") {
  block_index index;
  const auto one = add_one(index, 0, none);
  for (int i = 0; i < 255; ++i)
    REQUIRE(index.pin(one) != none);
  CHECK(index.pin(one) == none);
  for (int i = 0; i < 255; ++i)
    index.unpin(one);
  CHECK(index.worst() == one);
}

TEST_CASE("the index takes at most 80 bytes a block, and no more after a million lives") {
  block_index index;
  for (std::uint64_t i = 0; i < 4096; ++i)
    add_one(index, i, none);
  for (std::uint64_t i = 4096; i < 200000; ++i) {
    if (std::has_single_bit(i) || std::has_single_bit(i - 1) || i % 9973 == 0) {
      INFO(i << " blocks");
      REQUIRE(index.bytes() <= 80 * index.size());
    }
    add_one(index, i, none);
  }
  const auto bytes = index.bytes();
  const auto end = 200'000 + on_one_thread(1'000'000);
  for (std::uint64_t i = 200'000; i < end; ++i) {
    index.give_up(index.worst());
    add_one(index, i, none);
  }
  CHECK(index.bytes() == bytes);
}

TEST_CASE(
  "a guess where a block stands is as good as a search, right or wrong, and never finds what has gone") {
  block_index index;
  const auto first = add_one(index, 1, none);
  const auto second = add_one(index, 2, first);
  const auto third = add_one(index, 3, second);
  for (const auto guess : {first, second, third, third + 1, none}) {
    CHECK(index.find_near(guess, spread(2)) == second);
    CHECK(index.find_near(guess, spread(4)) == none);
  }
  index.erase(third);
  CHECK(index.find_near(third, spread(3)) == none);
  // The slot has another block now.
  CHECK(add_one(index, 5, first) == third);
  CHECK(index.find_near(third, spread(3)) == none);
  CHECK(index.find_near(second, spread(5)) == third);
}
