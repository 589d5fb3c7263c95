#include "actors/session/generation_sink.hpp"

#include "tests/support/toy_generation.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/send.hpp>
#include <caf/system_messages.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <catch2/catch.hpp>

using namespace godwit;

namespace {

struct settings : caf::actor_system_config {
  settings() { set("scheduler.policy", caf::atom("testing")); }
};

/// A consumer that notes what comes.
struct world {
  settings with;
  caf::actor_system system{with};
  caf::scheduler::test_coordinator& scheduler =
    dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  std::vector<request_id> came;
  int released = 0;
  generation_sink_actor consumer =
    system.spawn([this](generation_sink_actor::pointer) -> generation_sink_actor::behavior_type {
      return {[this](const letter<schema::TokenBatch>& mail) { came.push_back(mail.read().getRequest()); }};
    });

  generation_sink_actor make() {
    return make_generation_sink(
      system, caf::actor_cast<caf::strong_actor_ptr>(consumer), [this] { ++released; });
  }
  ~world() {
    caf::anon_send_exit(consumer, caf::exit_reason::user_shutdown);
    scheduler.run();
  }
};

} // namespace

TEST_CASE("a sink passes tokens on in order, and says when nobody holds it any more") {
  world all;
  auto first = all.make();
  auto second = first;
  for (request_id i = 1; i <= 3; ++i)
    caf::anon_send(i % 2 == 0 ? first : second, toy_batch(i, {}));
  all.scheduler.run();
  CHECK(all.came == std::vector<request_id>{1, 2, 3});
  first = nullptr;
  CHECK(all.released == 0);
  second = nullptr;
  CHECK(all.released == 1);
}

TEST_CASE("what is meant for the sink does not end its session") {
  world all;
  const auto sink = all.make();
  caf::anon_send_exit(sink, caf::exit_reason::kill);
  all.scheduler.run();
  caf::anon_send(sink, toy_batch(7, {}));
  all.scheduler.run();
  CHECK(all.came == std::vector<request_id>{7});
}

TEST_CASE("whoever watches a sink learns that its session is gone, also when it begins later") {
  world all;
  generation_sinks sinks;
  const auto sink = all.make();
  sinks.add(sink);
  { sinks.add(all.make()); } // one that nobody holds does not matter
  int down = 0;
  const auto watch = [&] {
    return all.system.spawn([&](caf::event_based_actor* self) {
      self->monitor(sink);
      self->set_down_handler([&, self](const caf::down_msg& message) {
        down += message.source == sink.address() ? 1 : 0;
        self->quit();
      });
      return caf::behavior{[](int) {}};
    });
  };
  const auto first = watch(); // an actor that nobody holds would end
  all.scheduler.run();
  CHECK(down == 0);
  sinks.end();
  all.scheduler.run();
  CHECK(down == 1);
  const auto second = watch();
  all.scheduler.run();
  CHECK(down == 2);
}
