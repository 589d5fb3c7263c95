#include "actors/handover/lease_book.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using namespace std::chrono_literals;

namespace {

using moment = lease_book::moment;

constexpr moment start{};

struct fixture {
  lease_book book{{.orders = 3, .blocks = 10, .longest = 60s}};

  request_id open(std::uint64_t transfer, std::chrono::milliseconds lease = 5s) {
    const auto made = book.open(transfer, "t", std::vector<token_id>(33, 1), lease);
    REQUIRE(made);
    return *made;
  }
  /// An order that is computed, with so many blocks.
  void keep(std::uint64_t transfer, std::vector<block_id> blocks, moment now = start) {
    REQUIRE(book.computed(open(transfer)));
    REQUIRE(book.keep(transfer, std::move(blocks), now).empty());
  }
};

} // namespace

TEST_CASE_METHOD(fixture, "an order is computed, kept and released") {
  const auto running = open(7);
  CHECK(book.transfer_of(running) == 7);
  CHECK(book.fetch(7, {0, 1}, start).error().code == errc::not_found);
  CHECK(book.computed(running));
  CHECK_FALSE(book.computed(running));
  CHECK(book.transfer_of(running) == 0);
  CHECK(book.keep(7, {4, 5}, start).empty());
  CHECK(book.kept() == 2);
  const auto blocks = book.fetch(7, {0, 2}, start);
  REQUIRE(blocks);
  CHECK(std::vector<block_id>(blocks->begin(), blocks->end()) == std::vector<block_id>{4, 5});
  const auto left = book.release(7);
  CHECK(left.running == 0);
  CHECK(left.blocks == std::vector<block_id>{4, 5});
  CHECK(left.transfer == 7);
  CHECK(book.size() == 0);
  CHECK(book.kept() == 0);
}

TEST_CASE_METHOD(
  fixture, "an order that is released while it is computed leaves its generation to be ended") {
  const auto running = open(7);
  CHECK(book.release(7).running == running);
  CHECK(book.transfer_of(running) == 0);
  // What is found for it afterwards goes back.
  CHECK(book.keep(7, {4, 5}, start) == std::vector<block_id>{4, 5});
  CHECK(book.release(7).transfer == 0);
}

TEST_CASE_METHOD(fixture, "a lease ends by its time, and every question renews it") {
  keep(7, {4, 5});
  keep(8, {6});
  CHECK(book.next() == start + 5s);
  CHECK(book.fetch(7, {0, 0}, start + 4s));
  CHECK(book.next() == start + 5s);
  const auto over = book.expire(start + 5s);
  REQUIRE(over.size() == 1);
  CHECK(over[0].transfer == 8);
  CHECK(over[0].blocks == std::vector<block_id>{6});
  CHECK(book.next() == start + 9s);
  // Late, though nobody has ended it yet: its blocks may be gone the next moment.
  CHECK(book.fetch(7, {0, 1}, start + 9s).error().code == errc::not_found);
  CHECK(book.expire(start + 9s).size() == 1);
  CHECK(book.next() == moment::max());
}

TEST_CASE_METHOD(fixture, "an order that is being computed has no lease that could end") {
  open(7);
  CHECK(book.next() == moment::max());
  CHECK(book.expire(start + 1h).empty());
}

TEST_CASE_METHOD(fixture, "a lease is as long as the node allows") {
  REQUIRE(book.computed(open(7, 10h)));
  CHECK(book.keep(7, {1}, start).empty());
  CHECK(book.next() == start + 60s);
}

TEST_CASE_METHOD(fixture, "what would be too much is not kept") {
  keep(7, {1, 2, 3, 4, 5, 6});
  REQUIRE(book.computed(open(8)));
  CHECK(book.keep(8, {11, 12, 13, 14, 15, 16}, start) == std::vector<block_id>{15, 16});
  CHECK(book.kept() == 10);
  CHECK(book.fetch(8, {0, 4}, start));
  CHECK(book.fetch(8, {0, 5}, start).error().code == errc::invalid_argument);
}

TEST_CASE_METHOD(fixture, "blocks that an order has not are refused, however the numbers are made") {
  keep(7, {1, 2});
  for (const auto& range : {block_range{0, 3}, block_range{2, 1}, block_range{3, 0},
         block_range{1, ~std::uint32_t{0}}, block_range{~std::uint32_t{0}, 2}})
    CHECK(book.fetch(7, range, start).error().code == errc::invalid_argument);
  CHECK(book.fetch(7, {2, 0}, start));
  CHECK(book.fetch(9, {0, 1}, start).error().code == errc::not_found);
}

TEST_CASE_METHOD(fixture, "there are so many orders, and each number once") {
  open(1);
  CHECK(book.open(1, "t", {}, 5s).error().code == errc::conflict);
  CHECK(book.open(0, "t", {}, 5s).error().code == errc::conflict);
  open(2);
  open(3);
  CHECK(book.open(4, "t", {}, 5s).error().code == errc::overloaded);
  book.release(2);
  open(4);
}
