#include "services/gateway/generation_tries.hpp"

#include "tests/unit/services/api/words.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using namespace godwit::test;
using namespace std::chrono_literals;
using schema::FinishReason;

namespace {

constexpr token_id vocabulary = 4;

/// Three tokens of prompt, at most five of the answer.
generation_tries tries(try_limits limits = {}) {
  generation_tries out(3, 5, limits);
  out.begin(1);
  return out;
}

bool takes(generation_tries& in, batch_parts parts) {
  return in.take(batch(parts).read(), vocabulary).has_value();
}

} // namespace

TEST_CASE("tokens are taken in their order, up to the end that was asked for") {
  auto one = tries();
  CHECK(takes(one, {.tokens = {{0}, {1}}, .position = 3}));
  CHECK(one.remaining() == 3);
  CHECK_FALSE(takes(one, {.tokens = {{2}}, .position = 6}));
  CHECK_FALSE(takes(one, {.tokens = {{2}}, .position = 4}));
  CHECK_FALSE(takes(one, {.tokens = {{vocabulary}}, .position = 5}));
  CHECK_FALSE(takes(one, {.tokens = {{0}, {0}, {0}, {0}}, .position = 5}));
  CHECK(takes(one, {.tokens = {{2}, {3}}, .position = 5}));
  // The last one without an end, and with it.
  auto other = one;
  CHECK_FALSE(takes(one, {.tokens = {{0}}, .position = 7}));
  CHECK(takes(other, {.tokens = {{0}}, .finish = FinishReason::LENGTH, .position = 7}));
  CHECK(std::vector<token_id>(other.tokens().begin(), other.tokens().end())
        == std::vector<token_id>{0, 1, 2, 3, 0});
}

TEST_CASE("what nobody had taken is refused, and what somebody had is tried again") {
  const auto why = GENERATE(errc::unavailable, errc::draining);
  auto fresh = tries();
  CHECK_FALSE(fresh.failed(why, 0ms));
  auto begun = tries();
  CHECK_FALSE(begun.accept());
  CHECK(begun.failed(why, 0ms));
  CHECK(begun.request() == 0);
  CHECK(begun.next() == 20ms);
}

TEST_CASE("a failure that would come again is final") {
  const auto why = GENERATE(errc::invalid_argument, errc::internal, errc::deadline, errc::resource_exhausted,
    errc::overloaded, errc::not_found);
  auto begun = tries();
  begun.accept();
  CHECK_FALSE(begun.failed(why, 0ms));
}

TEST_CASE("a generation that nobody can go on with has failed once it is known that it was begun") {
  auto known = tries();
  CHECK_FALSE(known.accept());
  CHECK(known.orphan());
  auto early = tries();
  CHECK_FALSE(early.orphan());
  CHECK(early.accept());
  // The next try is another matter.
  CHECK(early.failed(errc::peer_lost, 0ms));
  early.begin(2);
  CHECK_FALSE(early.accept());
}

TEST_CASE("tries in a row without a token are counted, and time without a worker is") {
  auto losing = tries({.attempts = 3});
  CHECK(losing.failed(errc::peer_lost, 0ms));
  losing.begin(2);
  CHECK(losing.failed(errc::peer_lost, 100ms));
  losing.begin(3);
  SECTION("a token begins the count anew") {
    takes(losing, {.tokens = {{0}}, .position = 3});
    CHECK(losing.failed(errc::peer_lost, 200ms));
    losing.begin(4);
    CHECK(losing.failed(errc::peer_lost, 300ms));
  }
  SECTION("without one the third is the last") {
    CHECK_FALSE(losing.failed(errc::peer_lost, 200ms));
  }
  SECTION("refusals meanwhile do not count, but the time does") {
    for (auto time = 200ms; time < 14'000ms; time += 1'000ms) {
      CHECK(losing.failed(errc::unavailable, time));
      losing.begin(4);
    }
    CHECK_FALSE(losing.failed(errc::unavailable, 14'900ms));
  }
}

TEST_CASE("pauses between tries grow up to a limit") {
  auto waiting = tries({.attempts = 100, .patience = 1h, .first_pause = 10ms, .longest_pause = 50ms});
  std::vector<std::chrono::milliseconds> pauses;
  for (request_id i = 2; i < 7; ++i) {
    REQUIRE(waiting.failed(errc::peer_lost, 0ms));
    pauses.push_back(*waiting.next());
    waiting.begin(i);
  }
  CHECK(pauses == std::vector<std::chrono::milliseconds>{10ms, 20ms, 40ms, 50ms, 50ms});
}
