// Random operations on all tiers at once: whatever happens, a block that is handed out has the content of its
// text, and when all is given back and given up, the pool is as it was.

#include "tests/support/allocated_bytes.hpp"
#include "tests/support/asked_number.hpp"
#include "tests/unit/actors/cache/tier_world.hpp"

#include <catch2/catch.hpp>

#include <functional>
#include <map>

using namespace godwit;
using namespace godwit::test;

namespace {

constexpr std::uint32_t pool_blocks = 24;

/// Texts that share beginnings of different lengths.
std::vector<token_id> any_text(std::mt19937& dice) {
  // One after the other: which argument is evaluated first is the compiler's choice.
  const auto which = static_cast<std::uint32_t>(dice() % 3);
  const auto length = 1 + dice() % 8;
  auto tokens = tier_world::text(length, which);
  const auto shared = tokens.size() / page_tokens / 2 * page_tokens;
  const auto branch = static_cast<token_id>(dice() % 4);
  for (std::size_t i = shared; i < tokens.size(); i += page_tokens)
    tokens[i] = 2000 + branch;
  return tokens;
}

struct request {
  std::vector<token_id> tokens;
  std::shared_ptr<tier_world::found> got;
};

/// @param look called before each operation, with its number
/// @returns how many damaged blocks were met
std::uint64_t run(
  std::uint32_t seed, unsigned operations, const std::function<void(unsigned)>& look = [](unsigned) {}) {
  std::mt19937 dice(seed);
  const auto on_disk = std::make_shared<memory_cold_store>();
  const auto mode = seed % 2 == 0 ? onboarding::halved : onboarding::always;
  tier_world at(pool_blocks, {.host_bytes = 10 * 512, .in_flight = 6, .mode = mode}, on_disk);
  std::map<request_id, request> open;
  request_id next = 0;
  std::uint64_t checked = 0;
  unsigned suspending = 0;
  for (unsigned i = 0; i < operations; ++i) {
    look(i);
    switch (dice() % 12) {
    case 0:
    case 1:
      static_cast<void>(at.compute(any_text(dice)));
      break;
    case 2:
    case 3:
      if (open.size() < 3) {
        const auto tokens = any_text(dice);
        const auto id = ++next;
        open[id] = {tokens, at.ask(id, tokens)};
        break;
      }
      [[fallthrough]];
    case 4:
      if (!open.empty()) {
        const auto which = open.begin();
        REQUIRE(at.right(*which->second.got, which->second.tokens));
        checked += which->second.got->blocks.size();
        at.cache->forgo(which->first);
        at.give_back(*which->second.got);
        open.erase(which);
      }
      break;
    case 5:
      at.cache->evict(static_cast<std::uint32_t>(1 + dice() % 4), [](std::uint32_t) {});
      break;
    case 6:
      if (dice() % 4 == 0) {
        ++suspending;
        at.cache->suspend("t", any_text(dice), [&](const result<tier_holdings>&) { --suspending; });
      }
      break;
    case 7:
      at.cache->swapped(at.names(any_text(dice)));
      break;
    case 8:
      on_disk->refuses = dice() % 8 == 0;
      if (dice() % 64 == 0)
        on_disk->lose_all();
      on_disk->damaged = dice() % 8 == 0 ? dice() % 4 : ~std::size_t{0};
      break;
    case 9:
      at.tick();
      break;
    default:
      for (auto steps = dice() % 6; steps > 0; --steps)
        at.step();
    }
    REQUIRE(at.pool->free_blocks() <= pool_blocks);
  }
  CHECK(checked > 0);
  for (auto& [id, which] : open) {
    at.settle();
    CHECK(at.right(*which.got, which.tokens));
    at.give_back(*which.got);
  }
  for (int i = 0; i < 100; ++i) {
    at.settle();
    at.tick();
  }
  CHECK(suspending == 0);
  at.evict(pool_blocks);
  at.cache->count();
  CHECK(at.pool->free_blocks() == pool_blocks);
  CHECK(at.counters->onboard_staged == 0);
  CHECK(at.counters->offload_waiting == 0);
  CHECK(at.counters->host_hits > 0);
  CHECK(at.counters->disk_hits > 0);
  return on_disk->stats().damaged;
}

} // namespace

TEST_CASE("random work on all tiers never gives a wrong block and loses none") {
  std::uint64_t damaged = 0;
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    INFO("seed " << seed);
    damaged += run(seed, 6000);
  }
  CHECK(damaged > 0);
}

// Hidden, as the one in cache_properties.test.cpp.
TEST_CASE("a million random operations on all tiers leave no memory behind", "[.][long]") {
  const auto operations = static_cast<unsigned>(asked_number("GODWIT_TEST_OPERATIONS", 1'000'000));
  for (const std::uint32_t seed : {21U, 22U}) {
    std::size_t before = 0;
    static_cast<void>(run(seed, operations / 2, [&](unsigned i) {
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
