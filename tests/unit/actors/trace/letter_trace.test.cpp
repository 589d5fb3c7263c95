#include "actors/trace/letter_trace.hpp"

#include "actors/trace/letter_kinds.hpp"
#include "actors/trace/spawn_traced.hpp"
#include "messages/catalogue.hpp"
#include "messages/text.hpp"
#include "tests/support/toy_generation.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <catch2/catch.hpp>

using namespace godwit;

namespace {

struct settings : caf::actor_system_config {
  settings() { set("scheduler.policy", caf::atom("testing")); }
};

struct world {
  settings with;
  caf::actor_system system{with};
  caf::scheduler::test_coordinator& scheduler =
    dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  generation_sink_actor sink =
    spawn_traced(system, [](generation_sink_actor::pointer self) -> generation_sink_actor::behavior_type {
      return {[self](const letter<schema::TokenBatch>& batch) {
        if (batch.read().getFinish() == schema::FinishReason::STOP)
          self->quit();
      }};
    });
  traceable* const traced = dynamic_cast<traceable*>(caf::actor_cast<caf::abstract_actor*>(sink));

  ~world() { send({3, {}, schema::FinishReason::STOP}); }
  letter<schema::TokenBatch> send(const toy_step& step) {
    auto batch = toy_batch(1, step);
    caf::anon_send(sink, batch);
    scheduler.run();
    return batch;
  }
};

} // namespace

TEST_CASE("a trace has what its actor sends, told by whoever it comes to, and what it tells itself once") {
  world w;
  REQUIRE(w.traced != nullptr);
  const auto helper = spawn_traced(w.system, [sink = w.sink](caf::event_based_actor* self) -> caf::behavior {
    return {[self, sink](join_atom) {
              self->send(sink, toy_batch(1, {0, {1, 2}}));
              self->send(self, status_atom::value);
              return status_atom::value;
            },
      [](status_atom) {}, [self](stop_atom) { self->quit(); }};
  });
  auto* const watched = dynamic_cast<traceable*>(caf::actor_cast<caf::abstract_actor*>(helper));
  REQUIRE(watched != nullptr);
  const auto trace = std::make_shared<letter_trace>("helper", 10, nullptr);
  REQUIRE(watched->begin_trace(trace));
  const auto asking = spawn_traced(w.system, [helper](caf::event_based_actor* self) {
    self->request(helper, std::chrono::seconds(1), join_atom::value).then([](status_atom) {});
  });
  w.scheduler.run();
  watched->end_trace();
  caf::anon_send(helper, stop_atom::value);
  w.scheduler.run();

  const auto report = trace->report();
  std::vector<std::string> seen;
  for (const auto each : report.read().getLetters())
    seen.push_back(text_of(each.getKind()) + " " + text_of(each.getTypes()) + " from "
                   + text_of(each.getFrom()) + " to " + text_of(each.getTo()));
  REQUIRE(seen.size() == 4);
  CHECK(seen[0].starts_with("request join from "));
  CHECK(seen[0].ends_with(" to "));
  CHECK(seen[1].starts_with("letter TokenBatch from  to "));
  CHECK(seen[1].size() > std::string("letter TokenBatch from  to ").size());
  CHECK(seen[2].starts_with("letter status from "));
  CHECK(seen[2].ends_with(" to "));
  CHECK(seen[3].starts_with("answer status from  to "));
}

TEST_CASE("messages are known by their types, and as large as their letters") {
  const auto page = std::make_shared<const std::vector<std::byte>>(100);
  const auto batch = letter<schema::TokenBatch>::make([](schema::TokenBatch::Builder) {}, {page});
  const auto single = caf::make_message(batch);
  const auto one = kind_of(*single.cvals());
  CHECK(one.types == "TokenBatch");
  CHECK(one.bytes == batch.bytes().size() + 100);
  const auto many =
    caf::make_message(join_atom::value, std::string("secret words"), letter<schema::CreditGrant>());
  CHECK(kind_of(*many.cvals()).types == "join text CreditGrant");
  CHECK(kind_of(*many.cvals()).bytes == letter<schema::CreditGrant>().bytes().size());
  const auto handles = caf::make_message(letter<schema::CacheLookup>(), cache_client_actor());
  CHECK(kind_of(*handles.cvals()).types == "CacheLookup handle");
}

TEST_CASE("a trace has what came while it ran, until it is full") {
  world w;
  REQUIRE(w.traced != nullptr);
  w.send({0, {1}});
  int told = 0;
  const auto trace = std::make_shared<letter_trace>("sink", 2, [&] { ++told; });
  CHECK(w.traced->begin_trace(trace));
  CHECK_FALSE(w.traced->begin_trace(trace));
  const auto small = w.send({1, {1}});
  const auto large = w.send({2, {1, 2, 3, 4, 5, 6, 7}});
  CHECK(told == 1);
  w.send({9, {1}});
  CHECK(told == 1);
  w.traced->end_trace();
  const auto seen = trace->report();
  const auto letters = seen.read().getLetters();
  REQUIRE(letters.size() == 2);
  CHECK(letters[0].getBytes() == small.bytes().size());
  CHECK(letters[1].getBytes() == large.bytes().size());
  CHECK(letters[0].getTypes() == "TokenBatch");
  CHECK(letters[0].getKind() == "letter");
  CHECK(letters[0].getFrom() == "");
  CHECK(letters[0].getMicroseconds() <= letters[1].getMicroseconds());
  // The next one begins with nothing.
  const auto other = std::make_shared<letter_trace>("sink", 2, nullptr);
  CHECK(w.traced->begin_trace(other));
  w.traced->end_trace();
  w.send({9, {1}});
  CHECK(other->report().read().getLetters().size() == 0);
}
