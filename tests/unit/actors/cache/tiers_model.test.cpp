// The tiers as a whole: what random work may do to them, and what it may not.

#include "tests/unit/actors/cache/tiers_history.hpp"

#include <catch2/catch.hpp>

#include <set>

using namespace godwit;
using namespace godwit::test;

TEST_CASE("random work on all tiers never gives a wrong block and loses none") {
  std::uint64_t damaged = 0;
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    INFO("seed " << seed);
    damaged += tiers_history(seed, 6000);
  }
  CHECK(damaged > 0);
}

TEST_CASE(
  "with room for all of them, every block that was moved down is found, whatever happens to the device") {
  // How a text goes down.
  enum class way : std::uint8_t { reused, told, suspended, swapped };
  const auto down = GENERATE(way::reused, way::told, way::suspended, way::swapped);
  const auto mode = GENERATE(onboarding::always, onboarding::halved);
  const bool with_host = GENERATE(false, true);
  if (down == way::swapped && !with_host)
    return;
  INFO("way " << static_cast<int>(down) << ", mode " << static_cast<int>(mode) << ", host " << with_host);
  const auto on_disk = down == way::swapped ? nullptr : std::make_shared<memory_cold_store>();
  const tier_options options{.host_bytes = with_host ? 1000 * 512U : 0U,
    .reuse = static_cast<std::uint8_t>(down == way::told ? 0 : 1),
    .in_flight = history_blocks,
    .mode = mode};
  std::set<std::vector<token_id>> flushed;
  const auto check_all = [&](tier_world& at) {
    for (const auto& tokens : flushed) {
      const auto got = at.ask(1, tokens);
      // All that is not there at once is on its way, but for a part that is computed meanwhile.
      CHECK(got->blocks.size() + got->answer.loading + got->answer.gap == tokens.size() / page_tokens);
      CHECK(got->answer.waiting == 0);
      CHECK((mode == onboarding::halved || got->answer.gap == 0));
      const auto announced = got->blocks.size() + got->answer.loading;
      at.settle();
      CHECK(got->blocks.size() + (got->tail ? got->tail->blocks.size() : 0) == announced);
      CHECK(at.right(*got, tokens));
      at.give_back(*got);
    }
  };
  std::mt19937 dice(static_cast<std::uint32_t>(down) + 4);
  {
    tier_world at(history_blocks, options, on_disk);
    for (int i = 0; i < 60; ++i) {
      const auto tokens = any_text(dice);
      static_cast<void>(at.evict(static_cast<std::uint32_t>(dice() % history_blocks)));
      if (at.pool->free_blocks() < tokens.size() / page_tokens)
        static_cast<void>(at.evict(history_blocks));
      REQUIRE(at.compute(tokens));
      switch (down) {
      case way::reused: {
        const auto again = at.ask(2, tokens);
        at.settle();
        at.give_back(*again);
        break;
      }
      case way::told:
        at.cache->told("t", at.names(tokens));
        break;
      case way::suspended:
        at.cache->suspend("t", tokens, [](const result<tier_holdings>&) {});
        break;
      case way::swapped:
        at.cache->swapped(at.names(tokens));
      }
      at.settle();
      flushed.insert(tokens);
      if (i % 10 == 9)
        check_all(at);
    }
    at.evict(history_blocks);
    CHECK(at.pool->free_blocks() == history_blocks);
    check_all(at);
    CHECK(at.counters->offload_dropped == 0);
  }
  REQUIRE(flushed.size() > 20);
  if (on_disk == nullptr)
    return;
  // What is on disk is there for the next process, which has nothing else.
  tier_world next(history_blocks, options, on_disk);
  check_all(next);
}
