#include "actors/prefill/request_watch.hpp"

#include "messages/catalogue.hpp"
#include "tests/unit/actors/engine/test_engine.hpp"

#include <caf/system_messages.hpp>
#include <catch2/catch.hpp>

#include <algorithm>

using namespace godwit;
using namespace godwit::test;
using schema::FinishReason;

namespace {

/// A router that only places what a test says.
placement_actor spawn_placement(test_engine& engine, std::vector<request_id>& ended) {
  return engine.system.spawn([&ended](placement_actor::pointer) -> placement_actor::behavior_type {
    return {[&ended](const letter<schema::WorkerReport>& mail) {
      for (const auto request : mail.read().getEnded())
        ended.push_back(request);
    }};
  });
}

double gauge_of(test_engine& engine, const std::string& name) {
  double value = -1;
  caf::scoped_actor self{engine.system};
  auto handle = self->request(engine.all.prefill, std::chrono::seconds(5), status_atom::value);
  engine.settle();
  handle.receive(
    [&](const letter<schema::ActorStatus>& mail) {
      for (const auto one : mail.read().getGauges())
        if (one.getName() == name)
          value = one.getValue();
    },
    [](const caf::error&) { FAIL(); });
  return value;
}

} // namespace

TEST_CASE("an actor is watched from its first request to the end of its last") {
  test_engine engine;
  request_watch watch;
  const auto one = engine.sink.address();
  const auto other = engine.all.router.address();
  CHECK(watch.add(1, one));
  CHECK(watch.add(1, other));
  CHECK(!watch.add(2, one));
  CHECK(watch.of(one) == std::vector<request_id>{1, 2});
  CHECK(watch.of(other) == std::vector<request_id>{1});
  CHECK(watch.size() == 2);
  CHECK(watch.remove(1) == std::vector<caf::actor_addr>{other});
  CHECK(watch.remove(1).empty());
  CHECK(watch.of(one) == std::vector<request_id>{2});
  CHECK(watch.remove(2) == std::vector<caf::actor_addr>{one});
  CHECK(watch.size() == 0);
}

TEST_CASE("when the router of generations is lost, each ends once, and nothing of it remains") {
  // In the queue, in its prompt, in its answer, without credit.
  const auto when = GENERATE(0, 1, 3, 8, 20, 40, 80, 200);
  test_engine engine({.cache_share = 0, .budget = 16, .chunk = 16, .prompts = 2});
  std::vector<request_id> ended;
  auto mortal = spawn_placement(engine, ended);
  const auto lasting = spawn_placement(engine, ended);
  for (request_id id = 1; id <= 6; ++id) {
    const ask what{.request = id,
      .tokens = prompt_of(60, static_cast<std::uint32_t>(id)),
      .max_tokens = 200,
      .seed = id,
      .credit = id == 3 ? 2U : 1'000U};
    caf::anon_send(engine.all.prefill, what.mail(), engine.sink, id == 1 ? lasting : mortal);
  }
  for (int i = 0; i < when && engine.scheduler.has_job(); ++i)
    engine.scheduler.run_once();
  caf::anon_send_exit(mortal, caf::exit_reason::kill);
  mortal = nullptr;
  engine.settle();
  for (request_id id = 2; id <= 6; ++id) {
    const auto& got = engine.box[id];
    CHECK(got.finals == 1);
    CHECK_FALSE(got.after_final);
    if (got.finish == FinishReason::FAILED)
      CHECK(got.code == errc::peer_lost);
    const ask what{
      .request = id, .tokens = prompt_of(60, static_cast<std::uint32_t>(id)), .max_tokens = 200, .seed = id};
    const auto answer = what.answer(engine.longest);
    CHECK(std::equal(got.tokens.begin(), got.tokens.end(), answer.begin()));
  }
  // The one of another router does not notice.
  CHECK(engine.box[1].finish == FinishReason::LENGTH);
  CHECK(ended == std::vector<request_id>{1});
  CHECK(engine.all.counters->sequences == 0);
  CHECK(engine.all.counters->streams == 0);
  CHECK(engine.all.counters->free_blocks == engine.all.kv_blocks);
  CHECK(gauge_of(engine, "requests") == 0);
  CHECK(gauge_of(engine, "watched") == 0);
  caf::anon_send_exit(lasting, caf::exit_reason::user_shutdown);
}

TEST_CASE("a generation is ended by the loss of its consumer, though its router does not know of it") {
  test_engine engine({.cache_share = 0});
  std::vector<request_id> ended;
  const auto placement = spawn_placement(engine, ended);
  auto mortal = engine.spawn_sink();
  const ask what{.request = 1, .tokens = prompt_of(40, 1), .max_tokens = 100, .credit = 5};
  caf::anon_send(engine.all.prefill, what.mail(), mortal, placement);
  engine.settle();
  CHECK(engine.all.counters->sequences == 1);
  caf::anon_send_exit(mortal, caf::exit_reason::kill);
  engine.settle();
  CHECK(ended == std::vector<request_id>{1});
  CHECK(engine.all.counters->sequences == 0);
  CHECK(engine.all.counters->free_blocks == engine.all.kv_blocks);
  CHECK(gauge_of(engine, "watched") == 0);
  caf::anon_send_exit(placement, caf::exit_reason::user_shutdown);
}

TEST_CASE("a router that was lost before its request came leaves nothing") {
  test_engine engine({.cache_share = 0});
  std::vector<request_id> ended;
  const auto placement = spawn_placement(engine, ended);
  caf::anon_send_exit(placement, caf::exit_reason::kill);
  engine.settle();
  const ask what{.request = 1, .tokens = prompt_of(40, 1), .max_tokens = 100};
  caf::anon_send(engine.all.prefill, what.mail(), engine.sink, placement);
  engine.settle();
  CHECK(engine.box[1].finals == 1);
  CHECK(engine.all.counters->sequences == 0);
  CHECK(gauge_of(engine, "requests") == 0);
  CHECK(gauge_of(engine, "watched") == 0);
}
