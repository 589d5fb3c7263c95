// On whose behalf a turn is run: behind the answer to its message nobody waits for it, and its requests are
// still those of the message's trace.

#include "actors/trace/spawn_traced.hpp"
#include "tests/unit/actors/session/actor_world.hpp"

using namespace godwit;

namespace {

const trace_context first{0x4bf92f3577b34da6, 0xa3ce929d0e0e4736, 0x00f067aa0ba902b7, 1};
const trace_context second{1, 2, 3, 1};
const trace_context none{};

struct traced_world : actor_world {
  std::vector<trace_context> prompts; ///< for which the tokenizer was asked

  traced_world() {
    // Notes for whom it is asked, and has the other one do it.
    config.tokenizer = spawn_traced(system,
      [this, words = config.tokenizer](tokenizer_actor::pointer self) -> tokenizer_actor::behavior_type {
        const auto pass = [this, self, words](const auto& mail) {
          prompts.push_back(current_trace());
          return self->delegate(words, mail);
        };
        return {
          [=](const letter<schema::EncodeRequest>& mail) { return pass(mail); },
          [=](const letter<schema::DecodeRequest>& mail) { return pass(mail); },
          [=](const letter<schema::RenderRequest>& mail) { return pass(mail); },
          [](status_atom) { return letter<schema::ActorStatus>(); },
          [](drain_atom) { return letter<schema::Drained>(); },
          [self, words](stop_atom) {
            caf::anon_send(words, stop_atom::value);
            self->quit();
          },
        };
      });
  }

  /// As the gateway does: the actor of one call, which ends with the answer.
  void post_for(const trace_context& trace, const session_actor& session, const std::string& content,
    const std::string& key = {}) {
    spawn_for(trace, system, [=](caf::event_based_actor* self) {
      self
        ->request(session, std::chrono::seconds(100),
          letter<schema::PostMessage>::make([&](schema::PostMessage::Builder b) {
            b.setContent(content);
            b.setIdempotencyKey(key);
          }))
        .then([](const letter<schema::MessageAccepted>&) {}, [](const caf::error&) {});
    });
    run();
  }
  /// Router and worker of a generation are lost.
  void lose(request_id request) {
    generations.erase(request);
    run();
    pass(10'000);
  }
};

} // namespace

TEST_CASE("a turn is run for the trace of its message, also when it is begun again") {
  traced_world world;
  const auto session = world.spawn(world.open());
  world.post_for(first, session, "Hello");
  CHECK((world.traces == std::vector{first}));
  world.work(3);
  world.lose(1);
  CHECK((world.traces == std::vector{first, first}));
  // Before a token of it came.
  world.lose(2);
  CHECK((world.traces == std::vector{first, first, first}));
  CHECK(trace_carrier::any());
  world.settle();
  CHECK_FALSE(trace_carrier::any());
  // The next message has none.
  world.post(session, "Go on");
  CHECK((world.traces == std::vector{first, first, first, none}));
  world.settle();
  // One of two renders, or with the text that is new.
  REQUIRE(world.prompts.size() > 2);
  CHECK((world.prompts.front() == first));
  CHECK((world.prompts.back() == none));
}

TEST_CASE("a prompt that goes on from the turn before is made for its own message's trace") {
  traced_world world;
  const auto session = world.spawn(world.open());
  world.post(session, "Hello");
  world.settle();
  world.prompts.clear();
  world.post_for(second, session, "Go on");
  // Two texts and what is new of them.
  CHECK((world.prompts == std::vector{second, second, second}));
  world.settle();
  CHECK_FALSE(trace_carrier::any());
}

TEST_CASE("a message that waits for its turn keeps its trace, and does not lend it to the turn before") {
  traced_world world;
  const auto session = world.spawn(world.open());
  world.post(session, "Hello");
  world.post_for(first, session, "and then");
  world.post_for(second, session, "and at last");
  world.lose(1);
  CHECK((world.traces == std::vector{none, none}));
  world.settle();
  CHECK((world.traces == std::vector{none, none, first, second}));
  CHECK_FALSE(trace_carrier::any());
}

TEST_CASE("a cancelled turn's trace is not kept, and a refused message's neither") {
  traced_world world;
  const auto session = world.spawn(world.open());
  world.post_for(first, session, "Hello");
  world.post_for(second, session, "never run");
  CHECK(trace_carrier::any());
  for (const turn_number turn : {2, 1})
    world.ask<letter<schema::TurnState>>(
      session, letter<schema::CancelTurn>::make([&](schema::CancelTurn::Builder b) { b.setTurn(turn); }));
  CHECK_FALSE(trace_carrier::any());
  world.log->fail_next(memory_journal::call::append, {errc::overloaded, "no", "", ""});
  world.post_for(first, session, "not written");
  CHECK_FALSE(trace_carrier::any());
  CHECK(world.traces.size() == 1);
}

TEST_CASE("a turn that another owner began has a trace when its message is posted once more") {
  traced_world world;
  const auto id = world.open();
  {
    const auto before = world.spawn(id);
    world.post_for(first, before, "Hello", "key");
    world.work(2);
    world.ask<letter<schema::SessionInfo>>(before, info_atom::value);
    caf::anon_send(before, stop_atom::value);
    world.run();
  }
  CHECK_FALSE(trace_carrier::any());
  world.config.incarnation = "start-2";
  const auto session = world.spawn(id);
  world.run();
  CHECK((world.traces == std::vector{first, none}));
  world.post_for(second, session, "Hello", "key");
  world.post_for(first, session, "Hello", "key");
  world.lose(2);
  CHECK((world.traces == std::vector{first, none, second}));
  world.settle();
  CHECK_FALSE(trace_carrier::any());
}
