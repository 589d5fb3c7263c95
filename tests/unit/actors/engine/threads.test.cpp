// The engine as it runs in a node: a thread for the device, CAF's workers for the rest.

#include "tests/unit/actors/cache/memory_cold_store.hpp"
#include "tests/unit/actors/engine/threaded_engine.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <future>
#include <thread>

using namespace godwit;
using namespace godwit::test;
using schema::FinishReason;

namespace {

model_card fake_card() {
  model_card card;
  card.id = "fake";
  card.text = std::make_shared<fake_text>();
  return card;
}

} // namespace

TEST_CASE("clients on several threads get the tokens of the definition, and cancels end what they name") {
  constexpr request_id per_thread = 25;
  engine_options options{.kv_tokens = 1024, .budget = 64, .chunk = 32};
  const bool with_tiers = GENERATE(false, true);
  if (with_tiers) {
    // Blocks go down and come back all the time, some while those before them are computed.
    options.kv_tokens = 512;
    options.tiers = {
      .host_bytes = 16 * 2048, .cold = std::make_shared<memory_cold_store>(), .mode = onboarding::halved};
  }
  threaded_engine at(std::make_unique<fake_model>(), fake_card(), options);
  const auto ask_of = [](request_id id) {
    ask what;
    what.request = id;
    what.tokens = prompt_of(20 + id % 90, static_cast<std::uint32_t>(id % 7));
    what.max_tokens = 10 + static_cast<std::uint32_t>(id % 50);
    what.seed = id;
    what.credit = 1 + static_cast<std::uint32_t>(id % 8);
    return what;
  };
  std::vector<std::thread> clients;
  for (request_id first = 0; first < 4; ++first)
    clients.emplace_back([&, first] {
      for (request_id i = 1; i <= per_thread; ++i) {
        const auto id = first * per_thread + i;
        at.post(ask_of(id));
        if (id % 5 == 0)
          caf::anon_send(
            at.all.router, letter<schema::CancelRequest>::make(
                             [&](schema::CancelRequest::Builder b) { b.initRequests(1).set(0, id); }));
      }
    });
  for (auto& client : clients)
    client.join();
  REQUIRE(at.box->wait_for_ends(4 * per_thread));
  for (request_id id = 1; id <= 4 * per_thread; ++id) {
    const auto got = at.box->of(id);
    const auto answer = ask_of(id).answer(512);
    CHECK(got.finals == 1);
    if (got.finish == FinishReason::CANCELLED) {
      CHECK(id % 5 == 0);
      CHECK(std::equal(got.tokens.begin(), got.tokens.end(), answer.begin()));
    } else {
      CHECK(got.tokens == answer);
    }
  }
  // What was on its way for the last who left is free when its lane is done with a few blocks.
  for (int i = 0; i < 10'000 && at.all.counters->onboard_staged > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(at.all.counters->onboard_staged == 0);
  if (with_tiers) {
    WARN(at.all.counters->onboard_loads << " times blocks were brought, "
                                        << at.all.counters->onboard_overlapped
                                        << " of them behind a part that was computed");
    CHECK(at.all.counters->onboard_loads > 0);
  }
}

TEST_CASE("the steps of a full engine follow one another") {
  const auto log = std::make_shared<fake_model::log>();
  std::promise<void> all_posted;
  log->before_step = [wait = all_posted.get_future().share()] {
    // The first step is held until everybody is there.
    wait.wait_for(std::chrono::seconds(60));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  threaded_engine at(
    std::make_unique<fake_model>(fake_model::small_shape(), log), fake_card(), {.budget = 64, .chunk = 32});
  for (request_id id = 1; id <= 8; ++id)
    at.post({.request = id,
      .tokens = prompt_of(30, static_cast<std::uint32_t>(id)),
      .max_tokens = 60,
      .credit = 60});
  while (at.all.counters->streams < 8)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  all_posted.set_value();
  REQUIRE(at.box->wait_for_ends(8));
  // 60 steps carry all eight streams; a few more carry the prompts. Streams that missed steps would need
  // more.
  CHECK(at.all.counters->steps <= 60 + 8);
  const auto pause = static_cast<double>(at.all.counters->pause_nanoseconds)
                     / static_cast<double>(std::max<std::uint64_t>(1, at.all.counters->pauses));
  WARN("mean pause between steps: " << pause / 1000 << " us");
}
