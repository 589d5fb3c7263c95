// Workers that come and go while the router runs.

#include "actors/router/router.hpp"

#include "messages/text.hpp"
#include "tests/unit/actors/node/scripted_part.hpp"
#include "tests/unit/actors/router/scripted_worker.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scoped_actor.hpp>
#include <catch2/catch.hpp>

#include <deque>
#include <map>

using namespace godwit;
using namespace godwit::test;

namespace {

class world : public still_system {
 public:
  explicit world(const router_options& options = {})
    : router(spawn_router(system, "m", {}, options)), sink(spawn_sink()) {}
  ~world() {
    caf::anon_send(router, stop_atom::value);
    caf::anon_send_exit(sink, caf::exit_reason::user_shutdown);
    for (auto& worker : workers)
      end(worker);
    scheduler.run();
  }

  scripted_worker& worker(const std::string& name) { return workers.emplace_back(system, name); }
  void join(const scripted_worker& worker) {
    caf::anon_send(router, join_atom::value, worker_join(worker.load()), worker.prefill, worker.decode);
    scheduler.run();
  }
  /// As one that can have prompts computed by other nodes.
  void join_with_intake(const scripted_worker& worker) {
    caf::anon_send(
      router, join_atom::value, worker_join(worker.load()), worker.prefill, worker.decode, worker.intake);
    scheduler.run();
  }
  void prompts_on(const std::string& node, bool there) {
    caf::anon_send(router, prompt_source(node, there));
    scheduler.run();
  }
  void end(const scripted_worker& worker) {
    caf::anon_send(worker.prefill, stop_atom::value);
    caf::anon_send(worker.decode, stop_atom::value);
    scheduler.run();
  }

  /// @returns the worker that took it
  result<std::string> place(request_id id, unsigned tokens = 16) {
    caf::scoped_actor self{system};
    auto handle = self->request(router, std::chrono::seconds(5),
      letter<schema::GenerateRequest>::make([&](schema::GenerateRequest::Builder b) {
        b.setRequest(id);
        b.setModel("m");
        b.initTokens(tokens);
      }),
      sink);
    scheduler.run();
    result<std::string> out = fail(errc::internal, "no answer");
    handle.receive(
      [&](const letter<schema::GenerateAccepted>& mail) { out = text_of(mail.read().getWorker()); },
      [&](const caf::error& why) { out = fail(from_caf_error(why).code, from_caf_error(why).message); });
    return out;
  }
  letter<schema::ActorStatus> status() {
    const auto answer = ask<letter<schema::ActorStatus>>(router, status_atom::value);
    REQUIRE(answer->has_value());
    return **answer;
  }
  double gauge_of(const std::string& name) {
    const auto mail = status();
    for (const auto gauge : mail.read().getGauges())
      if (text_of(gauge.getName()) == name)
        return gauge.getValue();
    return -1;
  }

  std::map<request_id, errc> failed; ///< last batches that came
  std::deque<scripted_worker> workers;
  router_behaviour router;
  generation_sink_actor sink;

 private:
  generation_sink_actor spawn_sink() {
    return system.spawn([this](generation_sink_actor::pointer) -> generation_sink_actor::behavior_type {
      return {[this](const letter<schema::TokenBatch>& mail) {
        if (mail.read().getFinish() == schema::FinishReason::FAILED)
          failed[mail.read().getRequest()] = static_cast<errc>(mail.read().getErrorCode());
      }};
    });
  }
};

} // namespace

TEST_CASE("a router without workers waits, and uses the first that comes") {
  world w;
  CHECK(w.place(1).error().code == errc::unavailable);
  CHECK(text_of(w.status().read().getState()) == "waiting");
  auto& late = w.worker("late");
  w.join(late);
  CHECK(text_of(w.status().read().getState()) == "ready");
  CHECK(*w.place(2) == "late");
  CHECK(late.log->taken == std::vector<request_id>{2});
}

TEST_CASE("two workers share the requests") {
  world w;
  auto& one = w.worker("one");
  auto& two = w.worker("two");
  w.join(one);
  w.join(two);
  for (request_id id = 1; id <= 8; ++id)
    REQUIRE(w.place(id));
  CHECK(one.log->taken.size() == 4);
  CHECK(two.log->taken.size() == 4);
}

TEST_CASE("the requests of a worker that is lost end, and the others take what comes") {
  world w;
  auto& one = w.worker("one");
  w.join(one);
  REQUIRE(w.place(1));
  auto& two = w.worker("two");
  w.join(two);
  w.end(one);
  CHECK(w.failed == std::map<request_id, errc>{{1, errc::peer_lost}});
  CHECK(w.gauge_of("workers") == 1);
  for (request_id id = 2; id <= 5; ++id)
    CHECK(*w.place(id) == "two");
  CHECK(w.failed.size() == 1);
}

TEST_CASE("a worker of which one half has ended gets nothing more, and what it has goes on") {
  world w;
  auto& one = w.worker("one");
  w.join(one);
  REQUIRE(w.place(1));
  caf::anon_send(one.prefill, stop_atom::value);
  w.scheduler.run();
  CHECK(w.failed.empty());
  CHECK(w.place(2).error().code == errc::unavailable);
}

TEST_CASE("a worker that comes back under its name replaces the old one") {
  world w;
  auto& before = w.worker("one");
  w.join(before);
  REQUIRE(w.place(1));
  auto& after = w.worker("one");
  w.join(after);
  CHECK(w.failed == std::map<request_id, errc>{{1, errc::peer_lost}});
  CHECK(*w.place(2) == "one");
  CHECK(after.log->taken == std::vector<request_id>{2});
  // That the old one ends now, and what it still says, touches nothing.
  REQUIRE(before.log->placements.size() == 1);
  caf::anon_send(
    before.log->placements[0], letter<schema::WorkerReport>::make([](auto b) { b.initEnded(1).set(0, 1); }));
  w.end(before);
  CHECK(w.gauge_of("workers") == 1);
  CHECK(w.gauge_of("requests") == 1);
  CHECK(*w.place(3) == "one");
  CHECK(w.failed.size() == 1);
}

TEST_CASE("a worker that joins twice is the same one") {
  world w;
  auto& one = w.worker("one");
  w.join(one);
  REQUIRE(w.place(1));
  w.join(one);
  CHECK(w.failed.empty());
  CHECK(w.gauge_of("workers") == 1);
  w.end(one);
  CHECK(w.failed.size() == 1);
}

TEST_CASE("what a worker refuses before it begins goes to another one") {
  const auto code = GENERATE(errc::draining, errc::overloaded, errc::unavailable);
  world w;
  auto& one = w.worker("one");
  w.join(one);
  one.log->refusal = error{code, "not me", {}, {}};
  // Alone, it is the answer.
  CHECK(w.place(1).error().code == code);
  CHECK(w.gauge_of("requests") == 0);

  auto& two = w.worker("two");
  w.join(two);
  for (request_id id = 2; id <= 9; ++id)
    CHECK(*w.place(id) == "two");
  CHECK(one.log->cancelled.empty());
  CHECK(w.gauge_of("requests") == 8);
}

TEST_CASE("each worker that is tried is asked for the trace of the request") {
  world w;
  auto& one = w.worker("one");
  auto& two = w.worker("two");
  for (auto* each : {&one, &two}) {
    w.join(*each);
    each->log->refusal = error{errc::overloaded, "not me", {}, {}};
  }
  const trace_context trace{1, 2, 3, 1};
  const auto place_for = [&](const trace_context& whose, request_id id) {
    spawn_for(whose, w.system, [&w, id](caf::event_based_actor* self) {
      const auto request = letter<schema::GenerateRequest>::make([&](schema::GenerateRequest::Builder b) {
        b.setRequest(id);
        b.setModel("m");
        b.initTokens(16);
      });
      self->request(w.router, std::chrono::seconds(5), request, w.sink)
        .then([](const letter<schema::GenerateAccepted>&) {}, [](const caf::error&) {});
    });
    w.scheduler.run();
  };
  place_for(trace, 1);
  CHECK((one.log->traces == std::vector{trace}));
  CHECK((two.log->traces == std::vector{trace}));
  place_for({}, 2);
  CHECK_FALSE(one.log->traces.back().known());
  CHECK_FALSE(two.log->traces.back().known());
}

TEST_CASE("a worker that drains is not asked again until it joins again") {
  world w;
  auto& one = w.worker("one");
  w.join(one);
  one.log->refusal = error{errc::draining, "I end", {}, {}};
  CHECK(w.place(1).error().code == errc::draining);
  one.log->refusal.reset();
  CHECK(w.place(2).error().code == errc::unavailable);
  w.join(one);
  CHECK(*w.place(3) == "one");
}

TEST_CASE("a failure that is no refusal is the answer, and the worker is told to stop") {
  world w;
  auto& one = w.worker("one");
  auto& two = w.worker("two");
  w.join(one);
  w.join(two);
  const error why{errc::invalid_argument, "a token that is none", "tokens", {}};
  one.log->refusal = why;
  two.log->refusal = why;
  CHECK(w.place(1).error().code == errc::invalid_argument);
  CHECK(one.log->cancelled.size() + two.log->cancelled.size() == 1);
}

TEST_CASE("there may be so many workers, and the place of a lost one is free again") {
  router_options options;
  options.workers = 2;
  world w(options);
  auto& one = w.worker("one");
  w.join(one);
  w.join(w.worker("two"));
  w.join(w.worker("three"));
  CHECK(w.gauge_of("workers") == 2);
  CHECK(w.gauge_of("turned_away") == 1);
  w.end(one);
  auto& four = w.worker("four");
  w.join(four);
  CHECK(w.gauge_of("workers") == 2);
  for (request_id id = 1; id <= 4; ++id)
    REQUIRE(w.place(id));
  CHECK(four.log->taken.size() == 2);
}

TEST_CASE("a router ends its own worker with itself, and no other") {
  world w;
  auto& own = w.worker("own");
  auto& other = w.worker("other");
  const auto router =
    spawn_router(w.system, "m", {{own.load(), own.prefill, own.decode, true}}, router_options{});
  caf::anon_send(router, join_atom::value, worker_join(other.load()), other.prefill, other.decode);
  w.scheduler.run();
  caf::anon_send(router, stop_atom::value);
  w.scheduler.run();
  CHECK(own.log->stopped);
  CHECK_FALSE(other.log->stopped);
}

TEST_CASE("long prompts of a worker that leaves them to others are given a node that computes them") {
  world w;
  auto& split = w.worker("split");
  w.join_with_intake(split);
  CHECK(*w.place(1, 600) == "split");
  CHECK(split.log->sources.empty());
  w.prompts_on("far", true);
  CHECK(w.gauge_of("prompt_nodes") == 1);
  CHECK(*w.place(2, 511) == "split");
  CHECK(split.log->sources.empty());
  CHECK(*w.place(3, 512) == "split");
  CHECK(split.log->sources == std::vector<std::string>{"far"});
  w.prompts_on("far", false);
  CHECK(*w.place(4, 600) == "split");
  CHECK(split.log->sources.size() == 1);
}

TEST_CASE("a worker with a prefill of its own keeps its prompts") {
  world w;
  auto& whole = w.worker("whole");
  w.join(whole);
  w.prompts_on("far", true);
  CHECK(*w.place(1, 600) == "whole");
  CHECK(whole.log->sources.empty());
}

TEST_CASE("a prompt that others compute weighs on them, and on its worker from then on") {
  world w;
  auto& split = w.worker("split");
  w.join_with_intake(split);
  w.prompts_on("one", true);
  w.prompts_on("two", true);
  REQUIRE(w.place(1, 600));
  CHECK(w.gauge_of("prefill_tokens") == 0);
  REQUIRE(w.place(2, 600));
  REQUIRE(w.place(3, 600));
  CHECK(split.log->sources.size() == 3);
  caf::anon_send(split.log->placements[0],
    letter<schema::WorkerReport>::make([](auto b) { b.initPrefilled(1).set(0, 1); }));
  w.scheduler.run();
  CHECK(w.gauge_of("decode_blocks") == 38);
  caf::anon_send(
    split.log->placements[0], letter<schema::WorkerReport>::make([](auto b) { b.initEnded(1).set(0, 1); }));
  w.scheduler.run();
  CHECK(w.gauge_of("decode_blocks") == 0);
  CHECK(w.gauge_of("requests") == 2);
}

TEST_CASE("a refusal of a worker that leaves prompts to others sends the request elsewhere, too") {
  world w;
  auto& split = w.worker("split");
  w.join_with_intake(split);
  w.prompts_on("far", true);
  split.log->refusal = error{errc::overloaded, "not me", {}, {}};
  auto& whole = w.worker("whole");
  w.join(whole);
  for (request_id id = 1; id <= 4; ++id)
    CHECK(*w.place(id, 600) == "whole");
  CHECK(w.gauge_of("requests") == 4);
}
