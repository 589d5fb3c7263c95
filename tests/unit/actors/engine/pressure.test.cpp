// More work than pages.

#include "tests/unit/actors/cache/manual_lane.hpp"
#include "tests/unit/actors/engine/test_engine.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using namespace godwit::test;
using schema::FinishReason;

namespace {

/// Ten requests of which the pool cannot hold all: each ends with its own tokens.
void overfill(test_engine& engine) {
  std::vector<ask> asks;
  for (request_id id = 1; id <= 10; ++id)
    asks.push_back({.request = id,
      .tokens = prompt_of(40, static_cast<std::uint32_t>(id)),
      .max_tokens = 150,
      .seed = id});
  for (const auto& what : asks)
    engine.post(what);
  engine.settle();
  for (const auto& what : asks) {
    CHECK(engine.box[what.request].tokens == what.answer(engine.longest));
    CHECK(engine.box[what.request].finals == 1);
  }
  CHECK(engine.all.counters->preemptions > 0);
}

} // namespace

TEST_CASE("requests that together exceed the pool all finish, each with its own tokens") {
  test_engine engine({.kv_tokens = 256, .cache_share = 0});
  overfill(engine);
  CHECK(engine.all.counters->free_blocks == engine.all.kv_blocks);
}

TEST_CASE("unused cached blocks go before any stream is thrown out") {
  test_engine engine({.kv_tokens = 256});
  for (request_id id = 1; id <= 8; ++id)
    engine.request(
      {.request = id, .tokens = prompt_of(100, static_cast<std::uint32_t>(id)), .max_tokens = 30});
  CHECK(engine.all.counters->preemptions == 0);
  CHECK(engine.all.counters->evicted_blocks > 0);
  for (request_id id = 1; id <= 8; ++id)
    CHECK(engine.box[id].tokens.size() == 30);
}

TEST_CASE("the youngest is thrown out first") {
  test_engine engine({.kv_tokens = 128, .cache_share = 0});
  // Each fits alone, and both start; they cannot both grow to 100 tokens.
  engine.post({.request = 1, .tokens = prompt_of(30, 1), .max_tokens = 70});
  engine.post({.request = 2, .tokens = prompt_of(30, 2), .max_tokens = 70});
  while (engine.box[1].finals == 0)
    engine.scheduler.run_once();
  CHECK(engine.all.counters->preemptions == 1);
  CHECK(engine.box[2].finals == 0);
  engine.settle();
  CHECK(engine.box[2].finals == 1);
}

TEST_CASE("a more urgent request takes the pages of a less urgent one") {
  test_engine engine({.kv_tokens = 128, .cache_share = 0});
  const ask patient{.request = 1, .tokens = prompt_of(60, 1), .max_tokens = 60};
  const ask urgent{.request = 2, .tokens = prompt_of(100, 2), .max_tokens = 10, .priority = 5};
  engine.post(patient);
  while (engine.box[1].tokens.size() < 5)
    engine.scheduler.run_once();
  engine.post(urgent);
  while (engine.box[2].finals == 0)
    engine.scheduler.run_once();
  CHECK(engine.box[1].finals == 0);
  engine.settle();
  CHECK(engine.box[1].tokens == patient.answer(engine.longest));
  CHECK(engine.box[2].tokens == urgent.answer(engine.longest));
}

TEST_CASE("a stream that nobody reads does not keep its pages from others for ever") {
  test_engine engine({.kv_tokens = 128, .cache_share = 0, .stall = std::chrono::milliseconds(0)});
  const ask silent{.request = 1, .tokens = prompt_of(60, 1), .max_tokens = 60, .credit = 3};
  const ask active{.request = 2, .tokens = prompt_of(60, 2), .max_tokens = 60};
  engine.post(silent);
  engine.settle();
  engine.post(active);
  engine.settle();
  CHECK(engine.box[2].finals == 1);
  CHECK(engine.box[1].tokens.size() == 3);
  engine.grant(1, 100);
  engine.settle();
  CHECK(engine.box[1].tokens == silent.answer(engine.longest));
}

TEST_CASE("a prompt that waits for pages starts when a cancel frees them") {
  test_engine engine({.kv_tokens = 128, .cache_share = 0, .stall = std::chrono::hours(1)});
  engine.post({.request = 1, .tokens = prompt_of(100, 1), .max_tokens = 20, .credit = 3});
  engine.settle();
  const ask second{.request = 2, .tokens = prompt_of(100, 2), .max_tokens = 5};
  engine.post(second);
  engine.settle();
  CHECK(engine.box[2].tokens.empty());
  const auto steps = engine.log->steps;
  engine.settle();
  CHECK(engine.log->steps == steps);
  engine.cancel({1});
  engine.settle();
  CHECK(engine.box[2].tokens == second.answer(engine.longest));
}

TEST_CASE("a sequence that grows beyond the whole pool ends with length") {
  test_engine engine({.kv_tokens = 128});
  engine.request({.request = 1, .tokens = prompt_of(50, 1), .max_tokens = 400});
  CHECK(engine.box[1].finish == FinishReason::LENGTH);
  CHECK(engine.box[1].tokens.size() == 128 - 50);
}

TEST_CASE("what was thrown out is counted as cached only if it was never computed for its first token") {
  test_engine engine({.kv_tokens = 128});
  engine.post({.request = 1, .tokens = prompt_of(30, 1), .max_tokens = 70});
  engine.post({.request = 2, .tokens = prompt_of(30, 2), .max_tokens = 70});
  engine.settle();
  CHECK(engine.all.counters->preemptions > 0);
  CHECK(engine.box[2].cached_tokens == 0);
}

TEST_CASE("a preempted stream is brought back from host memory and not computed again") {
  test_engine engine({.kv_tokens = 128, .tiers = {.host_bytes = 1 << 20, .mode = onboarding::always}});
  const ask first{.request = 1, .tokens = prompt_of(30, 1), .max_tokens = 70};
  const ask second{.request = 2, .tokens = prompt_of(30, 2), .max_tokens = 70};
  engine.post(first);
  engine.post(second);
  engine.settle();
  CHECK(engine.box[1].tokens == first.answer(engine.longest));
  CHECK(engine.box[2].tokens == second.answer(engine.longest));
  CHECK(engine.all.counters->preemptions >= 1);
  CHECK(engine.all.counters->swapped_blocks >= 3);
  CHECK(engine.all.counters->host_hits == engine.all.counters->swapped_blocks);
  // Both prompts, and of the preempted one what was no full block.
  CHECK(engine.all.counters->prefilled_tokens <= 30 + 30 + 16);
  CHECK(engine.reclaimable() == engine.all.kv_blocks);
}

TEST_CASE("requests that together exceed the pool all finish with a host tier of any size") {
  const std::uint64_t host = GENERATE(2048U, 8192U, 1U << 20);
  test_engine engine({.kv_tokens = 256, .tiers = {.host_bytes = host, .mode = onboarding::always}});
  overfill(engine);
  CHECK(engine.reclaimable() == engine.all.kv_blocks);
  CHECK(engine.all.counters->onboard_staged == 0);
}

TEST_CASE("when a client leaves while blocks are brought for it, they are free within a step of others") {
  const auto copies = std::make_shared<job_list>();
  test_engine engine({.kv_tokens = 512,
    .tiers = {.host_bytes = 1 << 20, .mode = onboarding::always, .lanes = [copies] {
                return tier_lanes{std::make_unique<manual_lane>(copies), immediate_lane(), immediate_lane()};
              }}});
  const auto& counters = *engine.all.counters;
  const ask once{.request = 1, .tokens = prompt_of(200, 1), .max_tokens = 2};
  engine.request(once);
  auto again = once;
  again.request = 2;
  engine.request(again);
  REQUIRE(copies->run_one());
  engine.evict_all();
  CHECK(counters.free_blocks == engine.all.kv_blocks);

  // Another one decodes all the time.
  const ask other{.request = 9, .tokens = prompt_of(20, 9), .max_tokens = 200};
  engine.post(other);
  const auto run_steps = [&](std::uint64_t more) {
    for (const auto until = counters.steps + more; counters.steps < until;)
      engine.scheduler.run_once();
  };
  run_steps(5);
  again.request = 3;
  engine.post(again);
  while (counters.onboard_staged == 0)
    engine.scheduler.run_once();
  CHECK(counters.onboard_staged == 12);
  run_steps(5);
  CHECK(counters.onboard_staged == 12);
  CHECK(engine.box[3].finals == 0);

  auto steps = counters.steps.load();
  engine.cancel({3});
  while (engine.box[3].finals == 0)
    engine.scheduler.run_once();
  CHECK(engine.box[3].finish == FinishReason::CANCELLED);
  // As many as the word takes from the router to the cache.
  CHECK(counters.steps - steps <= 2);
  run_steps(1);
  // The lane comes to it, copies nothing, and gives the blocks back.
  steps = counters.steps;
  REQUIRE(copies->run_one());
  while (counters.onboard_staged > 0)
    engine.scheduler.run_once();
  CHECK(counters.steps - steps <= 1);
  CHECK(counters.onboard_forgone == 1);
  CHECK(counters.host_hits == 0);
  CHECK(engine.box[9].finals == 0);
  engine.settle();
  CHECK(engine.box[9].tokens == other.answer(engine.longest));
  CHECK(engine.reclaimable() == engine.all.kv_blocks);
  engine.evict_all();
  CHECK(counters.free_blocks == engine.all.kv_blocks);
}
