#include "actors/handover/prompt_transfer.hpp"

#include <catch2/catch.hpp>

#include <numeric>

using namespace godwit;

namespace {

using stage = prompt_transfer::stage;

const transfer_limits limits{.min_tokens = 100};

prompt_transfer of(std::size_t tokens) {
  std::vector<token_id> text(tokens);
  std::iota(text.begin(), text.end(), 0);
  return {7, 8, "t", text};
}

/// One whose source has computed it.
prompt_transfer ready(std::size_t tokens, std::uint32_t blocks, std::uint32_t cached = 0) {
  auto out = of(tokens);
  REQUIRE(out.probed(0, limits));
  REQUIRE(out.computed(blocks, cached));
  return out;
}

std::vector<block_id> blocks(std::uint32_t count) {
  std::vector<block_id> out(count);
  std::iota(out.begin(), out.end(), 50);
  return out;
}

} // namespace

TEST_CASE("an order is all full blocks that do not hold the last token, and the token behind them") {
  // 160 tokens fill 10 blocks, but the last token is computed here.
  CHECK(of(160).full_blocks() == 9);
  CHECK(of(160).order().size() == 145);
  CHECK(of(161).full_blocks() == 10);
  CHECK(of(161).order().size() == 161);
  CHECK(of(175).order().size() == 161);
  CHECK(of(16).full_blocks() == 0);
}

TEST_CASE("a prompt of which enough is to be computed is worth an order") {
  CHECK(of(200).probed(100, limits));
  CHECK_FALSE(of(200).probed(101, limits));
  CHECK_FALSE(of(200).probed(5000, limits));
  CHECK(of(100).probed(0, limits));
  // Not even a block: there is nothing to order, whatever the limit.
  CHECK_FALSE(of(16).probed(0, {.min_tokens = 0}));
  CHECK(of(17).probed(0, {.min_tokens = 0}));
  // What is all here is never ordered.
  CHECK_FALSE(of(64).probed(64, {.min_tokens = 0}));
}

TEST_CASE("a transfer goes from the order to the last block") {
  auto one = ready(161, 10);
  CHECK(one.at() == stage::ready);
  CHECK(one.look());
  CHECK(one.found(2) == 8);
  CHECK(one.first() == 2);
  CHECK(one.begin(blocks(8), 3, 2));
  CHECK(one.next() == block_range{2, 3});
  CHECK(one.next() == block_range{5, 3});
  CHECK_FALSE(one.next());
  CHECK(one.block(5) == 53);
  CHECK(one.came({2, 3}, 3));
  CHECK(one.came({5, 3}, 3));
  CHECK(one.next() == block_range{8, 2});
  CHECK(one.came({8, 2}, 2));
  CHECK(one.finished());
  CHECK(one.good() == 8);
  CHECK(one.tokens_of({2, 1}).front() == 32);
  CHECK(one.tokens_of({2, 8}).size() == 128);
}

TEST_CASE("nothing is fetched that is here by then") {
  auto one = ready(161, 6);
  REQUIRE(one.look());
  CHECK(one.found(6) == 0);
  CHECK(one.at() == stage::over);
}

TEST_CASE("without room it waits for another look") {
  auto one = ready(161, 10);
  REQUIRE(one.look());
  REQUIRE(one.found(0) == 10);
  CHECK(one.no_room());
  CHECK(one.at() == stage::ready);
  CHECK(one.look());
  CHECK(one.found(4) == 6);
  CHECK(one.begin(blocks(6), 8, 1));
}

TEST_CASE("answers that make no sense end it") {
  for (const auto& [said, cached] : {std::pair{0U, 0U}, {11U, 0U}, {~0U, 0U}, {10U, 176U}}) {
    auto one = of(161);
    REQUIRE(one.probed(0, limits));
    CHECK_FALSE(one.computed(said, cached));
    CHECK(one.at() == stage::over);
  }
}

TEST_CASE("events that have no place now change nothing") {
  auto one = of(161);
  CHECK_FALSE(one.computed(10, 0));
  CHECK_FALSE(one.look());
  CHECK(one.found(0) == 0);
  CHECK_FALSE(one.no_room());
  CHECK_FALSE(one.begin({}, 1, 1));
  CHECK_FALSE(one.next());
  CHECK_FALSE(one.came({0, 1}, 1));
  CHECK(one.at() == stage::probing);
  REQUIRE(one.probed(0, limits));
  CHECK_FALSE(one.probed(0, limits));
  REQUIRE(one.computed(10, 0));
  CHECK_FALSE(one.computed(10, 0));
  REQUIRE(one.look());
  CHECK_FALSE(one.look());
  CHECK(one.at() == stage::looking);
}

TEST_CASE("what neither node had found counts as computed for this request") {
  const auto fresh = [](std::uint32_t cached_there, std::uint32_t here, std::uint32_t came) {
    auto one = ready(161, 10, cached_there * page_tokens);
    REQUIRE(one.look());
    REQUIRE(one.found(here) == 10 - here);
    REQUIRE(one.begin(blocks(10 - here), 10, 1));
    const auto asked = one.next();
    REQUIRE(one.came(*asked, came));
    return one.fresh();
  };
  CHECK(fresh(0, 0, 10) == 10);
  CHECK(fresh(4, 0, 10) == 6);
  CHECK(fresh(4, 6, 4) == 4);
  CHECK(fresh(6, 4, 6) == 4);
  CHECK(fresh(10, 0, 10) == 0);
  // Of a transfer that broke off, what is here.
  CHECK(fresh(0, 2, 3) == 3);
  CHECK(fresh(4, 0, 3) == 0);
  CHECK(fresh(0, 0, 0) == 0);
}
