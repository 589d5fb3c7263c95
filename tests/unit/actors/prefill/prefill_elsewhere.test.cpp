// Prompts that other nodes compute, as the queue sees them.

#include "actors/prefill/prefill_queue.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

namespace {

letter<schema::GenerateRequest> request_of(request_id id) {
  return letter<schema::GenerateRequest>::make([&](schema::GenerateRequest::Builder b) {
    b.setRequest(id);
    auto tokens = b.initTokens(100);
    for (unsigned i = 0; i < 100; ++i)
      tokens.set(i, static_cast<std::uint32_t>(id) * 1000 + i);
    b.setPromptLength(100);
  });
}

const prefill_queue::clock::time_point start{};

} // namespace

TEST_CASE("a request that is held does not begin, and lets others go before it") {
  prefill_queue queue({.queued = 2});
  REQUIRE(queue.accept(request_of(1), true));
  REQUIRE(queue.accept(request_of(2)));
  CHECK(queue.queued() == 2);
  CHECK(queue.accept(request_of(3)).error().code == errc::overloaded);
  const auto questions = queue.begin(start);
  REQUIRE(questions.size() == 1);
  CHECK(questions[0].request == 2);
  queue.proceed(1);
  queue.proceed(1);
  queue.proceed(7);
  REQUIRE(queue.begin(start).size() == 1);
  CHECK(queue.queued() == 0);
}

TEST_CASE("a request that is dropped while it is held leaves nothing, and stays dropped") {
  prefill_queue queue({});
  REQUIRE(queue.accept(request_of(1), true));
  const auto dropped = queue.drop(1);
  CHECK(dropped.known);
  CHECK_FALSE(dropped.close);
  CHECK_FALSE(dropped.forgo);
  queue.proceed(1);
  CHECK(queue.begin(start).empty());
  CHECK(queue.ended(1).known);
  CHECK(queue.size() == 0);
}

TEST_CASE("blocks that were computed for the request elsewhere are not cached ones") {
  prefill_queue queue({});
  REQUIRE(queue.accept(request_of(1)));
  queue.begin(start);
  REQUIRE(queue.answer(1, {.blocks = {7}, .patience = std::chrono::seconds(9), .elsewhere = 5}, start));
  REQUIRE(queue.answer(1, {.blocks = {8, 9, 10, 11, 12}, .first = 1, .host = 5, .fresh = 4}, start));
  const auto wishes = queue.wishes();
  REQUIRE(wishes.openings.size() == 1);
  CHECK(wishes.openings[0].cached.size() == 6);
  // One that was here, and one that the other node had found.
  CHECK(wishes.openings[0].cached_at_most == 32);
  CHECK(wishes.rows.at(0).tokens == 4);
}

TEST_CASE("an answer without the blocks that were announced lets the request go on") {
  prefill_queue queue({});
  REQUIRE(queue.accept(request_of(1)));
  queue.begin(start);
  REQUIRE(queue.answer(1, {.blocks = {7}, .loading = 1, .patience = std::chrono::seconds(9)}, start));
  // The last of what the tiers here have; another node has more.
  REQUIRE(queue.answer(
    1, {.blocks = {8}, .first = 1, .patience = std::chrono::seconds(9), .host = 1, .elsewhere = 4}, start));
  CHECK(queue.wishes().openings.empty());
  REQUIRE(queue.answer(1, {.first = 2}, start));
  CHECK(queue.wishes().rows.at(0).tokens == 68);
}
