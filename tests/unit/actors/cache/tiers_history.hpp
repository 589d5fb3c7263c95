#pragma once

#include "tests/unit/actors/cache/tier_world.hpp"

#include <catch2/catch.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace godwit::test {

inline constexpr std::uint32_t history_blocks = 24;

/// Texts that share beginnings of different lengths.
inline std::vector<token_id> any_text(std::mt19937& dice) {
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

/// One that waits for its blocks.
struct tier_request {
  std::vector<token_id> tokens;
  std::shared_ptr<tier_world::found> got;
};

/// Random operations on all tiers at once. Whatever happens, a block that is handed out has the content of
/// its text, and when all is given back and given up, the pool is as it was.
/// @param look called before each operation, with its number
/// @returns how many damaged blocks were met
inline std::uint64_t tiers_history(
  std::uint32_t seed, unsigned operations, const std::function<void(unsigned)>& look = [](unsigned) {}) {
  std::mt19937 dice(seed);
  const auto on_disk = std::make_shared<memory_cold_store>();
  const auto mode = seed % 2 == 0 ? onboarding::halved : onboarding::always;
  tier_world at(history_blocks, {.host_bytes = 10 * 512, .in_flight = 6, .mode = mode}, on_disk);
  std::map<request_id, tier_request> open;
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
    REQUIRE(at.pool->free_blocks() <= history_blocks);
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
  at.evict(history_blocks);
  at.cache->count();
  CHECK(at.pool->free_blocks() == history_blocks);
  CHECK(at.counters->onboard_staged == 0);
  CHECK(at.counters->offload_waiting == 0);
  CHECK(at.counters->host_hits > 0);
  CHECK(at.counters->disk_hits > 0);
  return on_disk->stats().damaged;
}

} // namespace godwit::test
