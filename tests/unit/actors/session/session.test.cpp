#include "tests/unit/actors/session/actor_world.hpp"

#include "actors/session/event_id.hpp"
#include "actors/session/session_records.hpp"

using namespace godwit;

namespace {

using texts = std::vector<std::string>;

std::string status_of(const letter<schema::SessionInfo>& info) {
  return info.read().getStatus().cStr();
}

} // namespace

TEST_CASE("a message is answered and its events are sent only when the journal has them") {
  actor_world world;
  const auto session = world.spawn(world.open());
  const auto stream = world.subscribe(session, 100);
  world.log->hold();
  const auto answer = world.post(session, "Hello");
  CHECK(world.log->waiting() == 1);
  CHECK(!answer->has_value());
  CHECK(world.inboxes[stream].types.empty());
  CHECK(world.generations.empty());

  world.log->release(1);
  world.run();
  REQUIRE(answer->has_value());
  CHECK((***answer).read().getTurn() == 1);
  CHECK(world.inboxes[stream].types == texts{"message.accepted", "turn.started"});
  world.work(3);
  CHECK(world.inboxes[stream].types.size() == 2);
  world.log->resume();
  world.run();
  CHECK(world.inboxes[stream].types.size() == 3);
  world.settle();
  CHECK(world.inboxes[stream].types.back() == "turn.completed");
  CHECK(status_of(world.info(session)) == "idle");
}

TEST_CASE("a second turn is asked for with the tokens of the first") {
  actor_world world;
  const auto session = world.spawn(world.open(2));
  world.post(session, "Hello");
  world.settle();
  const auto first = world.generations.rbegin()->second.tokens;
  world.post(session, "Go on");
  const auto& prompt = world.generations.rbegin()->second.tokens;
  const auto answer = world.ask<letter<schema::Transcript>>(session, transcript_atom::value);
  const auto messages = (***answer).read().getMessages();
  REQUIRE(messages.size() == 3);
  CHECK(world.text->decode(prompt)
        == toy_chat({{"user", "Hello"}, {"assistant", messages[1].getContent().cStr()}, {"user", "Go on"}}));
}

TEST_CASE("a turn's stream ends with the turn, by the place that the answer gives") {
  actor_world world;
  const auto session = world.spawn(world.open());
  const auto answer = world.post(session, "Hello");
  const std::string before = (***answer).read().getEventBefore().cStr();
  const auto stream = world.subscribe(session, 100, 1);
  world.settle();
  CHECK(world.inboxes[stream].ended);
  CHECK(world.inboxes[stream].ids.front() > before);
  CHECK(world.inboxes[stream].types.front() == "message.accepted");
}

TEST_CASE("a session tells the oldest place that its journal has") {
  actor_world world;
  const auto id = world.open();
  const auto session = world.spawn(id);
  world.post(session, "Hello");
  world.settle();
  const event_ids ids(id);
  CHECK(std::string(world.info(session).read().getOldestEvent().cStr()) == ids.text({1, 0}));
  world.log->forget(id, 4);
  CHECK(std::string(world.info(session).read().getOldestEvent().cStr()) == ids.text({4, 0}));
  world.log->fail_next(memory_journal::call::read, {errc::io, "no", "", ""});
  CHECK(world.info(session).read().getOldestEvent().size() == 0);
  CHECK(status_of(world.info(session)) == "idle");
}

TEST_CASE("a subscriber without credit gets nothing until it grants some") {
  actor_world world;
  const auto session = world.spawn(world.open());
  const auto stream = world.subscribe(session, 0);
  world.post(session, "Hello");
  world.settle();
  CHECK(world.inboxes[stream].types.empty());
  caf::anon_send(session, letter<schema::EventCredit>::make([&](schema::EventCredit::Builder b) {
    b.setSubscription(stream);
    b.setEvents(1'000);
  }));
  world.run();
  CHECK(world.inboxes[stream].types.back() == "turn.completed");
}

TEST_CASE("a client that leaves cancels only the turn that asked for it") {
  for (const bool asked : {false, true}) {
    actor_world world;
    const auto session = world.spawn(world.open());
    world.post(session, "Hello", {}, asked);
    const auto stream = world.subscribe(session, 100, 1);
    world.work(2);
    caf::anon_send(session, letter<schema::Unsubscribe>::make([&](schema::Unsubscribe::Builder b) {
      b.setSubscription(stream);
      b.setClientLeft(true);
    }));
    world.run();
    CHECK(world.abandoned.empty() == !asked);
    world.ask<letter<schema::TurnState>>(
      session, letter<schema::CancelTurn>::make([](auto b) { b.setCause(schema::EndCause::CLIENT_LEFT); }));
    CHECK(world.abandoned.empty() == !asked);
    if (asked)
      CHECK(world.abandoned.front() == schema::EndCause::CLIENT_LEFT);
  }
}

TEST_CASE("a cancel is answered with the turn's true state") {
  actor_world world;
  const auto session = world.spawn(world.open());
  world.post(session, "Hello");
  world.work(2);
  for (int i = 0; i < 2; ++i) {
    const auto state = world.ask<letter<schema::TurnState>>(session, letter<schema::CancelTurn>());
    CHECK(std::string((***state).read().getStatus().cStr()) == "cancelled");
  }
  CHECK(world.abandoned.size() == 1);
}

TEST_CASE("a session that was running goes on by itself in a new process") {
  actor_world world;
  const auto id = world.open(5);
  auto session = world.spawn(id);
  world.post(session, "Hello");
  world.work(3);
  caf::anon_send(session, stop_atom::value);
  world.run();
  CHECK(world.abandoned == std::vector<schema::EndCause>{schema::EndCause::DRAINING});
  CHECK(world.disk->sessions.at(id).head.running);

  world.config.incarnation = "start-2";
  session = world.spawn(id);
  world.run();
  CHECK(world.generations.size() == 2);
  CHECK(world.disk->sessions.at(id).head.epoch == 2);
  world.settle();
  CHECK(status_of(world.info(session)) == "idle");
  const auto& tokens = world.generations.rbegin()->second.tokens;
  const auto prompt = world.text->encode(toy_chat({{"user", "Hello"}}));
  std::vector<token_id> golden = prompt;
  while (golden.size() < tokens.size())
    golden.push_back(toy_next(5, golden));
  CHECK(tokens == golden);
}

TEST_CASE("a quarantined session says so and refuses the rest") {
  actor_world world;
  const auto id = world.open();
  world.log->damage(id, 2);
  const auto session = world.spawn(id);
  CHECK(status_of(world.info(session)) == "quarantined");
  const auto answer = world.post(session, "Hello");
  CHECK((**answer).error().code == errc::quarantined);
  const auto asked = world.ask<bool>(session, passivate_atom::value);
  CHECK(***asked);
}

TEST_CASE("a session is passivated only when nothing runs and nobody listens") {
  actor_world world;
  const auto session = world.spawn(world.open());
  const auto stream = world.subscribe(session, 100);
  CHECK(!***world.ask<bool>(session, passivate_atom::value));
  caf::anon_send(session,
    letter<schema::Unsubscribe>::make([&](schema::Unsubscribe::Builder b) { b.setSubscription(stream); }));
  world.post(session, "Hello");
  CHECK(!***world.ask<bool>(session, passivate_atom::value));
  world.settle();
  CHECK(***world.ask<bool>(session, passivate_atom::value));
  const auto gone = world.ask<letter<schema::SessionInfo>>(session, info_atom::value);
  CHECK((**gone).error().code == errc::peer_lost);
}

TEST_CASE("a stalled generation is given up by the clock and tried again") {
  actor_world world;
  const auto session = world.spawn(world.open());
  world.post(session, "Hello");
  world.work(1);
  world.pass(119'999);
  CHECK(world.abandoned.empty());
  world.pass(2);
  CHECK(world.abandoned == std::vector<schema::EndCause>{schema::EndCause::DEADLINE});
  world.pass(1'000);
  CHECK(world.generations.size() == 2);
  world.settle();
  CHECK(status_of(world.info(session)) == "idle");
}

TEST_CASE("a fork is a session of its own") {
  actor_world world;
  const auto session = world.spawn(world.open());
  world.post(session, "Hello");
  world.settle();
  const auto answer = world.ask<letter<schema::SessionInfo>>(session, letter<schema::ForkRequest>());
  REQUIRE(**answer);
  const session_id child((***answer).read().getId().cStr());
  CHECK(is_session_id(child.value));
  const auto twin = world.spawn(child);
  world.post(session, "Go on");
  world.settle();
  const auto mine = world.generations.rbegin()->second.tokens;
  world.post(twin, "Go on");
  world.settle();
  CHECK(world.generations.rbegin()->second.tokens == mine);
}

TEST_CASE("an owner that is not one any more ends, and its streams with it") {
  actor_world world;
  const auto id = world.open();
  const auto session = world.spawn(id);
  const auto stream = world.subscribe(session, 100);
  REQUIRE(world.log->claim(
    id, 1, node_name("other"), claimed_record({node_name("other"), "x", "toy-1"}, 2, world.time->wall)));
  const auto answer = world.post(session, "Hello");
  CHECK((**answer).error().code == errc::stale_epoch);
  CHECK(world.inboxes[stream].ended);
  CHECK(world.inboxes[stream].error == static_cast<int>(errc::stale_epoch));
}

TEST_CASE("a session that is told that it is another's ends, its streams with it, its callers know why") {
  actor_world world;
  const auto session = world.spawn(world.open());
  const auto stream = world.subscribe(session, 100);
  world.log->hold();
  const auto answer = world.post(session, "Hello");
  world.ask<letter<schema::SessionInfo>>(session, info_atom::value);
  world.system.spawn([&](caf::event_based_actor* self) {
    self->send_exit(session, to_caf_error({errc::stale_epoch, "another node owns the session", "", ""}));
  });
  world.run();
  CHECK((**answer).error().code == errc::stale_epoch);
  CHECK(world.inboxes[stream].ended);
  CHECK(world.inboxes[stream].error == static_cast<int>(errc::stale_epoch));
  CHECK(
    (**world.ask<letter<schema::SessionInfo>>(session, info_atom::value)).error().code == errc::peer_lost);
  CHECK(world.reports.empty());
}

TEST_CASE("a session that is to be taken in an epoch is lost if it is in another") {
  actor_world world;
  const auto id = world.open();
  const auto at = [&](epoch_t epoch, bool claim) {
    auto handle =
      spawn_session(world.system, id, std::make_shared<const session_config>(world.config), {epoch, claim});
    world.stop_at_end(handle);
    return handle;
  };
  world.config.incarnation = "start-2";
  // Nothing is written until something has to be.
  const auto first = at(1, false);
  world.info(first);
  CHECK(world.disk->sessions.at(id).head.epoch == 1);
  const auto second = at(1, true);
  CHECK(**world.ask<letter<schema::ActorStatus>>(second, status_atom::value));
  CHECK(world.disk->sessions.at(id).head.epoch == 2);
  world.config.incarnation = "start-3";
  const auto third = at(1, true);
  const auto refused = world.ask<letter<schema::ActorStatus>>(third, status_atom::value);
  REQUIRE(refused->has_value());
  CHECK(!**refused);
  CHECK(world.disk->sessions.at(id).head.epoch == 2);
  world.post(second, "Hello");
  world.settle();
  CHECK(status_of(world.info(second)) == "idle");
}

TEST_CASE("a session that is only looked at claims nothing and runs nothing") {
  actor_world world;
  const auto id = world.open();
  const auto owner = world.spawn(id);
  world.post(owner, "Hello");
  world.work(2);
  const auto records = world.disk->sessions.at(id).records.size();
  const auto generations = world.generations.size();
  session_start start;
  start.look_only = true;
  const auto viewer =
    spawn_session(world.system, id, std::make_shared<const session_config>(world.config), start);
  world.stop_at_end(viewer);
  CHECK(status_of(world.info(viewer)) == "running");
  world.pass(10'000);
  CHECK(world.disk->sessions.at(id).records.size() == records);
  CHECK(world.generations.size() == generations);
}

TEST_CASE("a generation that everybody has let go of is begun again at once") {
  actor_world world;
  const auto session = world.spawn(world.open());
  world.post(session, "Hello");
  world.work(2);
  // The node of router and worker is lost: nothing holds the sink any more, and nothing will be sent.
  world.generations.clear();
  world.run();
  world.pass(1'000);
  REQUIRE(world.generations.size() == 1);
  CHECK(world.abandoned.empty());
  world.settle();
  CHECK(status_of(world.info(session)) == "idle");
  const auto& tokens = world.generations.rbegin()->second.tokens;
  auto golden = world.text->encode(toy_chat({{"user", "Hello"}}));
  while (golden.size() < tokens.size())
    golden.push_back(toy_next(1, golden));
  CHECK(tokens == golden);
}

TEST_CASE("whoever watches where tokens go learns that the session has ended") {
  actor_world world;
  const auto session = world.spawn(world.open());
  world.post(session, "Hello");
  world.work(1);
  const auto sink = world.generations.begin()->second.sink;
  bool down = false;
  const auto watcher = world.system.spawn([&](caf::event_based_actor* self) {
    self->monitor(sink);
    self->set_down_handler([&, self](const caf::down_msg&) {
      down = true;
      self->quit();
    });
    return caf::behavior{[](int) {}};
  });
  world.run();
  CHECK(!down);
  caf::anon_send_exit(session, caf::exit_reason::kill);
  world.run();
  CHECK(down);
}

TEST_CASE("closing a session ends its turn and its streams cleanly") {
  actor_world world;
  const auto session = world.spawn(world.open());
  const auto stream = world.subscribe(session, 100);
  world.post(session, "Hello");
  world.work(1);
  const auto answer = world.ask<letter<schema::SessionInfo>>(session, letter<schema::CloseSession>());
  CHECK(status_of(***answer) == "closed");
  CHECK(world.inboxes[stream].types.back() == "turn.cancelled");
  CHECK(world.inboxes[stream].ended);
  CHECK(world.inboxes[stream].error == 0);
}

TEST_CASE("new ids have the form of session ids") {
  std::uint64_t state = 0;
  const auto id = new_session_id([&] { return ++state; });
  CHECK(id.value == "ses_10000000000000002000000000000000");
  CHECK(is_session_id(id.value));
  CHECK(!is_session_id("ses_1"));
  CHECK(!is_session_id("ses_1000000000000000200000000000000G"));
}

TEST_CASE("a session tells what the cache has of it, by tier") {
  actor_world world;
  std::vector<token_id> asked;
  world.config.cache = world.cache([&](std::vector<token_id> tokens, bool) {
    asked = std::move(tokens);
    return letter<schema::CacheHoldings>::make([](schema::CacheHoldings::Builder b) {
      b.setDevice(48);
      b.setHost(32);
      b.setDisk(16);
    });
  });
  const auto session = world.spawn(world.open());
  CHECK(world.info(session).read().getKvDevice() == 0);
  CHECK(asked.empty());
  world.post(session, "Hello");
  world.settle();
  const auto info = world.info(session);
  CHECK(asked == world.generations.rbegin()->second.tokens);
  CHECK(info.read().getKvDevice() == 48);
  CHECK(info.read().getKvHost() == 32);
  CHECK(info.read().getKvDisk() == 16);
}

TEST_CASE("a suspended session says so until its next message, and one that runs is not suspended") {
  actor_world world;
  unsigned suspended = 0;
  world.config.cache = world.cache([&](const std::vector<token_id>&, bool suspend) {
    suspended += suspend ? 1 : 0;
    return letter<schema::CacheHoldings>::make([](schema::CacheHoldings::Builder b) { b.setDisk(32); });
  });
  const auto session = world.spawn(world.open());
  const auto suspend = [&] { return world.ask<letter<schema::SessionInfo>>(session, suspend_atom::value); };
  world.post(session, "Hello");
  const auto refused = suspend();
  REQUIRE(refused->has_value());
  CHECK((**refused).error().code == errc::conflict);
  CHECK((**refused).error().reason == "turn_running");
  world.settle();
  const auto done = suspend();
  CHECK(suspended == 1);
  CHECK(status_of(***done) == "suspended");
  CHECK((***done).read().getKvDisk() == 32);
  CHECK(status_of(world.info(session)) == "suspended");
  world.post(session, "Go on");
  CHECK(status_of(world.info(session)) == "running");
  world.settle();
  CHECK(status_of(world.info(session)) == "idle");
}

TEST_CASE("a session without a cache can be suspended, and there is nothing to move") {
  actor_world world;
  const auto session = world.spawn(world.open());
  const auto done = world.ask<letter<schema::SessionInfo>>(session, suspend_atom::value);
  CHECK(status_of(***done) == "suspended");
}

TEST_CASE("a session pins what it has, holds one pin, and stays while it does") {
  actor_world world;
  world.config.cache =
    world.cache([](const std::vector<token_id>&, bool) { return letter<schema::CacheHoldings>(); });
  const auto session = world.spawn(world.open());
  const auto pin = [&](std::uint32_t seconds) {
    return world.ask<letter<schema::CachePinned>>(
      session, letter<schema::CachePin>::make([=](schema::CachePin::Builder b) { b.setSeconds(seconds); }));
  };
  const auto passivated = [&] { return ***world.ask<bool>(session, passivate_atom::value); };
  const auto unpin = [&] {
    return world.ask<letter<schema::CachePinned>>(session, letter<schema::CacheUnpin>());
  };
  const auto early = pin(60);
  CHECK((**early).error().code == errc::conflict);
  CHECK((**early).error().reason == "nothing_cached");
  world.post(session, "Hello");
  world.settle();

  const auto made = pin(60);
  CHECK((***made).read().getBlocks() == 2);
  REQUIRE(world.pins.size() == 1);
  CHECK(world.pins[0].tenant == "t");
  CHECK(world.pins[0].tokens == world.generations.rbegin()->second.tokens);
  CHECK(world.pins[0].seconds == 60);
  CHECK_FALSE(passivated());

  // The next one takes its place; one that is refused changes nothing.
  REQUIRE(**pin(100));
  CHECK(world.unpinned == std::vector{std::pair(std::string("t"), std::uint64_t{1})});
  world.pin_refusal = error{errc::resource_exhausted, "the tenant would pin 9 blocks, and may pin 4", {}, {}};
  const auto refused = pin(500);
  CHECK((**refused).error().code == errc::conflict);
  CHECK((**refused).error().reason == "pin_quota");
  CHECK((**refused).error().message == "the tenant would pin 9 blocks, and may pin 4");
  world.pin_refusal = error{errc::not_found, "no block of these tokens is in the cache", {}, {}};
  CHECK((**pin(500)).error().reason == "nothing_cached");
  CHECK(world.unpinned.size() == 1);
  world.pin_refusal.reset();

  SECTION("until it is taken back") {
    CHECK((***unpin()).read().getBlocks() == 0);
    CHECK(world.unpinned.back() == std::pair(std::string("t"), std::uint64_t{2}));
    CHECK((***unpin()).read().getBlocks() == 0);
    CHECK(world.unpinned.size() == 2);
  }
  SECTION("until its time is over") {
    world.pass(99'000);
    CHECK_FALSE(passivated());
    world.pass(1'000);
  }
  SECTION("until it is closed") {
    world.ask<letter<schema::SessionInfo>>(session,
      letter<schema::CloseSession>::make([](schema::CloseSession::Builder b) { b.setCause("deleted"); }));
    world.settle();
    CHECK(world.unpinned.back() == std::pair(std::string("t"), std::uint64_t{2}));
    return;
  }
  CHECK(passivated());
}
