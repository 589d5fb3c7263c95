// What a session does while its journal does not answer.

#include "actors/session/session_machine.hpp"
#include "actors/session/session_records.hpp"
#include "tests/unit/actors/session/actor_world.hpp"
#include "tests/unit/actors/session/held_clerks.hpp"

using namespace godwit;

namespace {

using info_letter = letter<schema::SessionInfo>;

/// Sessions with clerks who answer when the test says so.
class waiting_world : public actor_world {
 public:
  waiting_world() { config.clerks = clerks; }
  ~waiting_world() override {
    clerks->resume();
    run();
  }
  void answer_all() {
    while (clerks->waiting() > 0) {
      clerks->answer();
      run();
    }
  }
  /// A session with a message whose journal answers nothing from here on.
  struct asked {
    session_id id;
    session_actor session;
    std::string behind; ///< the place before the message
  };
  asked say_and_hold() {
    auto id = open();
    auto session = spawn(id);
    const auto posted = post(session, "Hello");
    settle();
    std::string behind = (***posted).read().getEventBefore().cStr();
    clerks->hold();
    return {std::move(id), std::move(session), std::move(behind)};
  }
  std::string status(const session_actor& session) {
    const auto answer = ask<letter<schema::ActorStatus>>(session, status_atom::value);
    REQUIRE(answer->has_value());
    return **answer ? (***answer).read().getState().cStr() : "refused";
  }
  std::shared_ptr<reply<letter<schema::Subscribed>>> subscribe_behind(
    const session_actor& session, const std::string& after) {
    const auto sink = system.spawn([this](event_sink_actor::pointer) -> event_sink_actor::behavior_type {
      return {[this](const letter<schema::EventBatch>& mail) {
        for (const auto event : mail.read().getEvents())
          got.emplace_back(event.getId().cStr());
      }};
    });
    return ask<letter<schema::Subscribed>>(session,
      letter<schema::SubscribeRequest>::make([&](schema::SubscribeRequest::Builder b) {
        b.setCredit(100);
        b.setAfter(after);
      }),
      sink);
  }

  std::shared_ptr<held_clerks> clerks = std::make_shared<held_clerks>(log);
  std::vector<std::string> got; ///< ids of events
};

template <class T>
errc code_of(const std::shared_ptr<actor_world::reply<T>>& answer) {
  REQUIRE(answer->has_value());
  REQUIRE_FALSE(**answer);
  return (**answer).error().code;
}

} // namespace

TEST_CASE("calls wait in order until a session's journal was read, and its status does not") {
  waiting_world world;
  const auto id = world.open();
  world.clerks->hold();
  const auto session = world.spawn(id);
  CHECK(world.status(session) == "starting");
  const auto info = world.ask<info_letter>(session, info_atom::value);
  const auto first = world.post(session, "one");
  const auto second = world.post(session, "two");
  const auto transcript = world.ask<letter<schema::Transcript>>(session, transcript_atom::value);
  const auto leaves = world.ask<bool>(session, passivate_atom::value);
  REQUIRE(leaves->has_value());
  CHECK_FALSE(***leaves);
  CHECK_FALSE(info->has_value());
  CHECK_FALSE(first->has_value());
  CHECK_FALSE(transcript->has_value());
  world.answer_all();
  CHECK(world.status(session) == "ready");
  REQUIRE(info->has_value());
  CHECK(**info);
  REQUIRE(first->has_value());
  CHECK((***first).read().getTurn() == 1);
  REQUIRE(second->has_value());
  CHECK((***second).read().getTurn() == 2);
  REQUIRE(transcript->has_value());
  // It was asked behind both messages; they were being written.
  CHECK(**transcript);
  world.settle();
  world.answer_all();
  CHECK(world.disk->sessions.at(id).head.running == false);
}

TEST_CASE("more calls than may wait for a session are refused") {
  waiting_world world;
  world.config.limits.waiting_commands = 2;
  world.config.limits.open_calls = 3;
  const auto id = world.open();
  world.clerks->hold();
  const auto session = world.spawn(id);
  std::vector<std::shared_ptr<actor_world::reply<info_letter>>> calls;
  const auto ask = [&] { calls.push_back(world.ask<info_letter>(session, info_atom::value)); };
  for (int i = 0; i < 3; ++i)
    ask();
  CHECK(code_of(calls[2]) == errc::overloaded);
  world.answer_all();
  for (int i = 0; i < 2; ++i)
    CHECK(**calls[static_cast<std::size_t>(i)]);
  // Behind the beginning, calls that ask the journal are bounded too.
  calls.clear();
  for (int i = 0; i < 4; ++i)
    ask();
  CHECK(world.clerks->waiting() == 3);
  CHECK(code_of(calls[3]) == errc::overloaded);
  world.answer_all();
  for (int i = 0; i < 3; ++i)
    CHECK(**calls[static_cast<std::size_t>(i)]);
}

TEST_CASE("a session that ends before its journal was read answers who waits") {
  for (const bool taken : {false, true}) {
    waiting_world world;
    const auto id = world.open();
    world.clerks->hold();
    const auto session = world.spawn(id);
    const auto info = world.ask<info_letter>(session, info_atom::value);
    const auto post = world.post(session, "one");
    const auto drained = world.ask<letter<schema::Drained>>(session, drain_atom::value);
    if (taken)
      world.system.spawn([&](caf::event_based_actor* self) {
        self->send_exit(session, to_caf_error({errc::stale_epoch, "another node owns the session", "", ""}));
      });
    else
      caf::anon_send(session, stop_atom::value);
    world.run();
    const auto why = taken ? errc::stale_epoch : errc::draining;
    CHECK(code_of(info) == why);
    CHECK(code_of(post) == why);
    REQUIRE(drained->has_value());
    world.answer_all();
    CHECK(world.disk->sessions.at(id).records.size() == 2);
  }
}

TEST_CASE("whoever asks the journal by way of a session is answered when that ends") {
  waiting_world world;
  const auto [id, session, behind] = world.say_and_hold();
  const auto info = world.ask<info_letter>(session, info_atom::value);
  const auto fork = world.ask<info_letter>(session, letter<schema::ForkRequest>());
  const auto stream = world.subscribe_behind(session, behind);
  CHECK(world.clerks->waiting() == 3);
  CHECK_FALSE(stream->has_value());
  world.system.spawn([&](caf::event_based_actor* self) {
    self->send_exit(session, to_caf_error({errc::stale_epoch, "another node owns the session", "", ""}));
  });
  world.run();
  CHECK(code_of(info) == errc::stale_epoch);
  CHECK(code_of(fork) == errc::stale_epoch);
  CHECK(code_of(stream) == errc::stale_epoch);
}

TEST_CASE("a session whose journal is read slowly streams and forks as any other") {
  waiting_world world;
  const auto [id, session, behind] = world.say_and_hold();
  const auto stream = world.subscribe_behind(session, behind);
  const auto fork = world.ask<info_letter>(session, letter<schema::ForkRequest>());
  // The session goes on; the fork is of what it was.
  const auto second = world.post(session, "Go on");
  world.settle();
  REQUIRE(second->has_value());
  CHECK_FALSE(fork->has_value());
  world.answer_all();
  REQUIRE(fork->has_value());
  REQUIRE(**fork);
  CHECK((***fork).read().getTurns() == 1);
  REQUIRE(stream->has_value());
  REQUIRE(**stream);
  // All events behind the place, each once.
  session_machine machine(id);
  std::vector<std::string> wanted;
  for (const auto& record : world.disk->sessions.at(id).records) {
    const auto events = machine.apply(record);
    REQUIRE(events);
    for (const auto& event : *events)
      if (machine.ids().text(event.place) > behind)
        wanted.push_back(machine.ids().text(event.place));
  }
  CHECK(world.got == wanted);
}

TEST_CASE("a claim goes on while a session waits for it, and a lost one ends the session") {
  for (const bool stolen : {false, true}) {
    waiting_world world;
    const auto id = world.open();
    world.config.incarnation = "start-2";
    world.clerks->hold();
    session_start start{1, true};
    const auto session =
      spawn_session(world.system, id, std::make_shared<const session_config>(world.config), start);
    world.stop_at_end(session);
    const auto status = world.ask<letter<schema::ActorStatus>>(session, status_atom::value);
    const auto post = world.post(session, "Hello");
    world.clerks->answer();
    world.run();
    CHECK_FALSE(status->has_value());
    if (stolen)
      REQUIRE(world.log->claim(
        id, 1, node_name("other"), claimed_record({node_name("other"), "x", "toy-1"}, 2, world.time->wall)));
    world.answer_all();
    REQUIRE(status->has_value());
    CHECK((**status).has_value() == !stolen);
    CHECK(world.disk->sessions.at(id).head.epoch == 2);
    CHECK(world.disk->sessions.at(id).head.owner.value == (stolen ? "other" : "node"));
    REQUIRE(post->has_value());
    if (stolen)
      CHECK(code_of(post) == errc::stale_epoch);
    else
      CHECK(**post);
  }
}
