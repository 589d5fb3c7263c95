// Sessions of several nodes over one journal: who is asked, who takes over, who gives up.

#include "tests/unit/actors/directory/mesh_world.hpp"

using namespace godwit;

namespace {

enum : std::size_t { a, b, c };

std::string status_of(const letter<schema::SessionInfo>& info) {
  return info.read().getStatus().cStr();
}

/// A message whose answer has come for some of its length.
void begin_turn(mesh_world& world, std::size_t node, const std::string& id) {
  const auto session = world.find(node, id);
  REQUIRE(session);
  const auto answer = world.post(*session, "Hello", "k");
  REQUIRE(answer->has_value());
  REQUIRE(**answer);
}

/// A directory that is lost with whatever it is asked for.
directory_actor::behavior_type falling_directory(
  directory_actor::pointer self, const std::function<void()>& fallen) {
  const auto fall = [fallen] {
    fallen();
    return to_caf_error({errc::peer_lost, "the node is gone", {}, {}});
  };
  return {
    [fall](
      const letter<schema::SessionSettings>&) -> caf::result<letter<schema::SessionInfo>> { return fall(); },
    [fall](const letter<schema::LocateRequest>&) -> caf::result<session_actor> { return fall(); },
    [fall](const letter<schema::ListRequest>&) -> caf::result<letter<schema::SessionList>> { return fall(); },
    [fall](erase_atom, const letter<schema::LocateRequest>&) -> caf::result<letter<schema::SessionInfo>> {
      return fall();
    },
    [](status_atom) { return letter<schema::ActorStatus>(); },
    [](drain_atom) { return letter<schema::Drained>(); },
    [self](stop_atom) { self->quit(); },
  };
}

} // namespace

TEST_CASE("a session is found from every node, and its owner stays the owner") {
  mesh_world world;
  const auto id = world.create(a);
  const auto here = world.find(a, id);
  REQUIRE(here);
  CHECK(*world.find(b, id) == *here);
  CHECK(*world.find(c, id) == *here);
  CHECK(world.owner(id) == "a");
  CHECK(world.epoch(id) == 1);
  const auto other = world.ask<session_actor>(world.nodes[b].directory, mesh_world::named(id, 0, "other"));
  CHECK((**other).error().code == errc::not_found);
  CHECK((**other).error().reason == "session_not_found");
  CHECK(world.find(b, "ses_" + std::string(32, '0')).error().code == errc::not_found);
  CHECK(world.gauge(b, "passed_calls") == 1);
  CHECK(world.gauge(b, "waiting_calls") == 0);
  CHECK(world.gauge(b, "live_sessions") == 0);
}

TEST_CASE("a node that knows wrongly who has a session does not send a call round for ever") {
  mesh_world world;
  const auto id = world.create(c);
  // To a, b is the owner; to b, a is.
  world.nodes[a].peers->up(node_name("c"), world.nodes[b].directory);
  world.nodes[b].peers->up(node_name("c"), world.nodes[a].directory);
  const auto answer = world.seek(a, id);
  REQUIRE(answer->has_value());
  CHECK((**answer).error().code == errc::unavailable);
  CHECK((**answer).error().reason == "session_moves");
  CHECK(world.gauge(a, "passed_calls") + world.gauge(b, "passed_calls") == 3);
  CHECK(world.gauge(a, "waiting_calls") + world.gauge(b, "waiting_calls") == 0);
  const auto erased = world.erase(b, id);
  REQUIRE(erased->has_value());
  CHECK((**erased).error().code == errc::unavailable);
  CHECK(world.disk->sessions.contains(session_id(id)));
  CHECK(world.epoch(id) == 1);
  // One that has come far enough is not passed on, but answered where the session is.
  CHECK((**world.seek(a, id, 3)).error().code == errc::unavailable);
  CHECK(**world.seek(c, id, 3));
}

TEST_CASE("an idle session of a lost node is taken when it is asked for, and goes on there") {
  mesh_world world;
  const auto id = world.create(a);
  begin_turn(world, a, id);
  world.settle();
  world.kill(a);
  world.ticks(3);
  CHECK(world.owner(id) == "a");
  const auto session = world.find(b, id);
  REQUIRE(session);
  CHECK(world.owner(id) == "b");
  CHECK(world.epoch(id) == 2);
  CHECK(*world.find(c, id) == *session);
  world.post(*session, "Go on");
  world.settle();
  CHECK(world.check(id) == 2);
  CHECK(world.epoch(id) == 2);
}

TEST_CASE("two nodes that are asked at once for a session of a lost node give the same answer") {
  const auto seed = GENERATE(range(0U, 30U));
  std::mt19937 dice(seed);
  mesh_world world;
  const auto id = world.create(a);
  world.find(a, id);
  world.kill(a);
  auto first = std::make_shared<mesh_world::reply<session_actor>>();
  auto second = std::make_shared<mesh_world::reply<session_actor>>();
  for (const auto& [node, answer] : {std::pair(b, first), std::pair(c, second)})
    world.system.spawn([id, to = world.nodes[node].directory, answer](caf::event_based_actor* self) {
      self->request(to, std::chrono::seconds(100), mesh_world::named(id))
        .then([answer](const session_actor& found) { *answer = result<session_actor>(found); },
          [answer](const caf::error& why) {
            *answer = result<session_actor>(tl::unexpected<error>(from_caf_error(why)));
          });
    });
  while (world.run_one(&dice)) {
  }
  REQUIRE(first->has_value());
  REQUIRE(second->has_value());
  REQUIRE(**first);
  CHECK(***first == ***second);
  CHECK(world.epoch(id) == 2);
  CHECK(world.gauge(b, "live_sessions") + world.gauge(c, "live_sessions") == 1);
}

TEST_CASE("running turns of a lost node go on at once, each on one of the others") {
  mesh_world world;
  std::vector<std::string> ids;
  for (int i = 0; i < 60; ++i) {
    ids.push_back(world.create(a, static_cast<std::uint64_t>(i)));
    begin_turn(world, a, ids.back());
  }
  const auto idle = world.create(a);
  world.work(2);
  world.kill(a);
  std::map<std::string, int> taken;
  for (const auto& id : ids) {
    CHECK(world.epoch(id) == 2);
    ++taken[world.owner(id)];
  }
  CHECK(world.owner(idle) == "a");
  // Of 60 fair choices fewer than 15 for one side have a probability below 1 in 20,000.
  CHECK(taken["b"] + taken["c"] == 60);
  CHECK(std::min(taken["b"], taken["c"]) >= 15);
  world.settle();
  for (const auto& id : ids)
    CHECK(world.check(id) == 1);
  CHECK(world.gauge(b, "taken_sessions") == taken["b"]);
}

TEST_CASE("a long journal is gone through page by page, with other calls in between") {
  mesh_world world;
  for (int i = 0; i < 700; ++i)
    world.create(b);
  const auto id = world.create(a);
  begin_turn(world, a, id);
  world.kill(a);
  CHECK(world.epoch(id) == 2);
  world.settle();
  CHECK(world.check(id) == 1);
}

TEST_CASE("an owner that is lost at any moment of a turn leaves one message and the whole answer") {
  const auto steps = GENERATE(range(0, 40));
  mesh_world world;
  const auto id = world.create(a, 7);
  const auto session = *world.find(a, id);
  const auto mail = letter<schema::PostMessage>::make([](schema::PostMessage::Builder to) {
    to.setContent("Hello");
    to.setIdempotencyKey("k");
  });
  world.system.spawn([session, mail](caf::event_based_actor* self) {
    self->request(session, std::chrono::seconds(100), mail)
      .then([](const letter<schema::MessageAccepted>&) {}, [](const caf::error&) {});
  });
  // One token whenever nothing else happens.
  for (int i = 0; i < steps; ++i)
    if (!world.run_one())
      for (auto& [request, one] : world.generations)
        if (const auto step = one.go_on(1)) {
          caf::anon_send(one.sink, toy_batch(request, *step));
          break;
        }
  world.kill(a);
  const auto before = world.stored(id).records.size();
  world.settle();
  const auto next = world.find(b, id);
  REQUIRE(next);
  const auto again = world.post(*next, "Hello", "k");
  REQUIRE(again->has_value());
  REQUIRE(**again);
  world.settle();
  CHECK(world.check(id) == 1);
  session_machine machine{session_id(id)};
  for (const auto& record : world.stored(id).records)
    REQUIRE(machine.apply(record));
  CHECK(machine.turns().size() == 1);
  // What the old owner still does changes nothing any more.
  world.nodes[a].stopped = false;
  const auto after = world.stored(id).records.size();
  world.run();
  world.settle();
  CHECK(world.stored(id).records.size() == after);
  CHECK(after >= before);
}

TEST_CASE("of two that both believe to be the owner one goes on, and the other says so") {
  mesh_world world;
  const auto id = world.create(a, 3);
  begin_turn(world, a, id);
  const auto stream = world.subscribe(*world.find(a, id), 1'000);
  world.work(2);
  // The way between a and the others is cut; all of them reach the journal.
  for (const auto other : {b, c}) {
    world.nodes[other].peers->down(node_name("a"));
    world.nodes[a].peers->down(world.nodes[other].name);
  }
  world.run();
  const auto taker = world.owner(id);
  CHECK(taker != "a");
  CHECK(world.epoch(id) == 2);
  world.settle();
  CHECK(world.inboxes[stream].ended);
  CHECK(world.inboxes[stream].error == static_cast<int>(errc::stale_epoch));
  CHECK(world.gauge(a, "live_sessions") == 0);
  CHECK(world.gauge(a, "overtaken_sessions") == 1);
  CHECK(world.check(id) == 1);
  CHECK(world.reports.empty());

  // a is asked, and does not take it back from a node that only it cannot see.
  CHECK((world.find(a, id)).error().code == errc::unavailable);
  CHECK(world.epoch(id) == 2);
  world.connect(a);
  CHECK(*world.find(a, id) == *world.find(world.index(taker), id));
  CHECK(world.epoch(id) == 2);
}

TEST_CASE("an owner that was stopped finds when it goes on that others have its sessions") {
  mesh_world world;
  const auto busy = world.create(a, 4);
  const auto idle = world.create(a);
  begin_turn(world, a, busy);
  world.work(2);
  const auto stream = world.subscribe(*world.find(a, idle), 1'000);
  world.kill(a);
  const auto session = world.find(b, idle);
  REQUIRE(session);
  world.post(*session, "Hello");
  world.settle();
  CHECK(world.check(busy) == 1);
  CHECK(world.check(idle) == 1);
  const auto epochs = world.epoch(busy) + world.epoch(idle);

  world.resume(a);
  world.ticks(3);
  // Who listened is told to look elsewhere, though the session had nothing to write.
  CHECK(world.inboxes[stream].ended);
  CHECK(world.inboxes[stream].error == static_cast<int>(errc::stale_epoch));
  CHECK(world.gauge(a, "live_sessions") == 0);
  CHECK(*world.find(a, idle) == *session);
  CHECK(world.epoch(busy) + world.epoch(idle) == epochs);
  // It is a node like the others again.
  const auto fresh = world.create(a);
  CHECK(*world.find(b, fresh) == *world.find(a, fresh));
}

TEST_CASE("a call for a session that was taken meanwhile goes to the one who has it") {
  directory_limits limits;
  limits.verify = 0; // nobody looks but the call itself
  mesh_world world(3, limits);
  const auto id = world.create(a);
  world.find(a, id);
  world.stop(a);
  for (const auto other : {b, c})
    world.nodes[other].peers->down(node_name("a"));
  const auto session = world.find(b, id);
  REQUIRE(session);
  world.nodes[a].stopped = false;
  world.time->pass(2'000);
  CHECK(*world.find(a, id) == *session);
  CHECK(world.gauge(a, "live_sessions") == 0);
}

TEST_CASE("a node that starts leaves the sessions of nodes alone that it has not seen yet") {
  mesh_world world(2);
  const auto id = world.create(a, 5);
  begin_turn(world, a, id);
  const auto idle = world.create(a);
  world.work(1);
  const auto late = world.add("late");
  world.run();
  CHECK(world.epoch(id) == 1);
  // Who asks waits until the nodes are known.
  const auto asked = world.seek(late, idle);
  world.pass(1'000);
  CHECK(!asked->has_value());
  CHECK(world.gauge(late, "waiting_calls") == 1);
  world.connect(late);
  world.pass(1'000);
  REQUIRE(asked->has_value());
  CHECK(***asked == *world.find(a, idle));
  for (int i = 0; i < 10; ++i)
    world.pass(1'000);
  CHECK(world.epoch(id) == 1);
  CHECK(world.epoch(idle) == 1);
  CHECK(world.gauge(late, "recovered_sessions") == 0);
}

TEST_CASE("a node that starts takes the turns of nodes that do not come, after a while") {
  mesh_world world(1);
  const auto id = world.create(a, 5);
  begin_turn(world, a, id);
  world.work(1);
  world.stop(a);
  const auto late = world.add("late");
  world.run();
  const auto asked = world.seek(late, id);
  for (int i = 0; i < 4; ++i)
    world.pass(1'000);
  CHECK(world.epoch(id) == 1);
  CHECK(!asked->has_value());
  world.pass(1'000);
  CHECK(world.owner(id) == "late");
  REQUIRE(asked->has_value());
  CHECK(**asked);
  world.settle();
  CHECK(world.check(id) == 1);
}

TEST_CASE("a node that comes back as a new process goes on with what nobody has taken") {
  mesh_world world(2);
  const auto id = world.create(a, 5);
  begin_turn(world, a, id);
  world.work(1);
  world.stop(a);
  world.restart(a);
  world.run();
  CHECK(world.epoch(id) == 2);
  world.settle();
  CHECK(world.check(id) == 1);
}

TEST_CASE("an erase is passed on, and calls that come meanwhile end") {
  const auto seed = GENERATE(range(0U, 30U));
  std::mt19937 dice(seed);
  mesh_world world;
  const auto id = world.create(a);
  begin_turn(world, a, id);
  const auto stream = world.subscribe(*world.find(a, id), 1'000);
  int ended = 0;
  for (const auto node : {a, b, c, b, c})
    world.system.spawn([&, to = world.nodes[node].directory](caf::event_based_actor* self) {
      self->request(to, std::chrono::seconds(100), mesh_world::named(id))
        .then([&](const session_actor&) { ++ended; },
          [&](const caf::error& why) {
            CHECK(from_caf_error(why).code == errc::not_found);
            ++ended;
          });
    });
  int erased = 0;
  for (const auto node : {b, c})
    world.system.spawn([&, to = world.nodes[node].directory](caf::event_based_actor* self) {
      self->request(to, std::chrono::seconds(100), erase_atom::value, mesh_world::named(id))
        .then([&](const letter<schema::SessionInfo>&) { ++erased; },
          [&](const caf::error& why) {
            CHECK(from_caf_error(why).code == errc::not_found);
            ++ended;
          });
    });
  while (world.run_one(&dice)) {
  }
  CHECK(erased == 1);
  CHECK(ended == 6);
  CHECK(!world.disk->sessions.contains(session_id(id)));
  CHECK(world.inboxes[stream].ended);
  for (const auto node : {a, b, c}) {
    CHECK(world.find(node, id).error().code == errc::not_found);
    CHECK(world.gauge(node, "waiting_calls") == 0);
    CHECK(world.gauge(node, "live_sessions") == 0);
  }
}

TEST_CASE("a session of a lost node can be erased from any other") {
  mesh_world world;
  const auto id = world.create(a);
  world.find(a, id);
  world.kill(a);
  const auto erased = world.erase(c, id);
  REQUIRE(erased->has_value());
  CHECK(**erased);
  CHECK(world.find(b, id).error().code == errc::not_found);
}

TEST_CASE("a node that answers that it drains is not asked for what it does not run") {
  mesh_world world;
  const auto idle = world.create(a);
  const auto busy = world.create(a);
  begin_turn(world, a, busy);
  const auto drained = world.ask<letter<schema::Drained>>(world.nodes[a].directory, drain_atom::value);
  CHECK(!drained->has_value());
  const auto session = world.find(b, idle);
  REQUIRE(session);
  CHECK(world.owner(idle) == "b");
  CHECK(world.find(b, busy));
  CHECK(world.owner(busy) == "a");
  world.settle();
  CHECK(drained->has_value());
  CHECK(world.check(busy) == 1);
}

TEST_CASE("a call to a node that is lost on the way is answered by the one who takes the session") {
  mesh_world world;
  const auto id = world.create(a);
  world.kill(a);
  // As a link does: what waits for the node fails, and the node is not found any more.
  const bool noticed = GENERATE(true, false);
  const directory_actor falling =
    world.system.spawn(falling_directory, std::function<void()>([&world, noticed] {
      if (noticed)
        world.nodes[b].peers->down(node_name("a"));
    }));
  world.stop_at_end(falling);
  world.nodes[b].peers->up(node_name("a"), falling);
  const auto asked = world.seek(b, id);
  REQUIRE(asked->has_value());
  if (noticed) {
    REQUIRE(**asked);
    CHECK(world.owner(id) == "b");
  } else {
    // It is not asked for ever while the mesh says that it is there.
    CHECK((**asked).error().code == errc::unavailable);
    CHECK(world.epoch(id) == 1);
  }
  CHECK(world.gauge(b, "waiting_calls") == 0);
}

TEST_CASE("a list shows the sessions of other nodes without taking them") {
  mesh_world world;
  const auto mine = world.create(b);
  const auto idle = world.create(a);
  const auto busy = world.create(a);
  begin_turn(world, a, busy);
  world.work(3);
  const auto lost = world.create(c);
  const auto cut = world.create(c, 6);
  begin_turn(world, c, cut);
  world.stop(c);
  world.nodes[b].peers->down(node_name("c")); // a does not know
  world.nodes[a].peers->down(node_name("c"));
  const auto before = world.disk->sessions;
  const auto answer = world.ask<letter<schema::SessionList>>(
    world.nodes[b].directory, letter<schema::ListRequest>::make([](schema::ListRequest::Builder to) {
      to.setTenant("t");
      to.setLimit(100);
    }));
  REQUIRE(answer->has_value());
  REQUIRE(**answer);
  std::map<std::string, std::string> states;
  for (const auto session : (***answer).read().getSessions())
    states[session.getId().cStr()] = session.getStatus().cStr();
  CHECK(states
        == std::map<std::string, std::string>{
          {mine, "idle"}, {idle, "idle"}, {busy, "running"}, {lost, "idle"}, {cut, "running"}});
  for (const auto& id : {mine, idle, busy, lost})
    CHECK(world.epoch(id) == before.at(session_id(id)).head.epoch);
  CHECK(world.owner(lost) == "c");
}

TEST_CASE("an expired session is closed by its owner, and once that is lost by one of the others") {
  mesh_world world;
  std::vector<std::string> ids;
  for (int i = 0; i < 8; ++i)
    ids.push_back(world.create(a, 1, 12, 60));
  const auto closed = [&](const std::string& id) {
    return world.stored(id).records.back().record.read().isClosed();
  };
  world.stop(a);
  for (int i = 0; i < 5; ++i)
    world.pass(61'000);
  for (const auto& id : ids)
    CHECK(!closed(id));
  world.lose(a);
  world.ticks(5);
  std::map<std::string, int> by;
  for (const auto& id : ids) {
    CHECK(closed(id));
    CHECK(world.epoch(id) == 2);
    ++by[world.owner(id)];
  }
  CHECK(by["a"] == 0);
}

TEST_CASE("a turn whose takers were lost too is taken by whoever is left") {
  mesh_world world;
  std::vector<std::string> ids;
  for (int i = 0; i < 10; ++i) {
    ids.push_back(world.create(a, static_cast<std::uint64_t>(i)));
    begin_turn(world, a, ids.back());
  }
  // Both are stopped at once, but c learns of a first: it leaves half of them to b.
  world.stop(a);
  world.stop(b);
  world.nodes[c].peers->down(node_name("a"));
  world.run();
  CHECK(world.gauge(c, "live_sessions") < 10);
  world.nodes[c].peers->down(node_name("b"));
  world.ticks(8);
  for (const auto& id : ids) {
    CHECK(world.owner(id) == "c");
    CHECK(world.check(id) == 1);
  }
}

TEST_CASE("what another node claims before our claim is its, and calls are passed on") {
  mesh_world world;
  const auto id = world.create(a);
  world.kill(a);
  // b has read the head when c claims: the journal refuses b.
  world.log->fail_next(memory_journal::call::claim, {errc::stale_epoch, "too late", "", ""});
  const auto session = world.find(b, id);
  // Nobody else had it in truth: b tries again and gets it.
  REQUIRE(session);
  CHECK(world.owner(id) == "b");
  CHECK(world.epoch(id) == 2);
  CHECK(world.reports.empty());
  CHECK(status_of(world.info(*session)) == "idle");
}

TEST_CASE("a claim whose answer was lost is not another owner's") {
  mesh_world world;
  const auto id = world.create(a, 9);
  begin_turn(world, a, id);
  world.work(1);
  world.log->fail_next(memory_journal::call::claim, {errc::deadline, "the journal took too long", "", ""}, 1,
    memory_journal::outcome::stored);
  world.kill(a);
  world.ticks(2);
  CHECK(world.epoch(id) == 2);
  CHECK(world.check(id) == 1);
}

TEST_CASE("a node that could not claim a session does not show it as its own") {
  mesh_world world(2);
  const auto id = world.create(a);
  const auto session = *world.find(a, id);
  world.stop(a);
  world.lose(a);
  world.log->fail_next(
    memory_journal::call::claim, {errc::deadline, "the journal took too long", "", ""}, 100);
  CHECK(!world.find(b, id));
  CHECK(world.gauge(b, "live_sessions") == 0);
  world.resume(a);
  world.run();
  CHECK(*world.find(b, id) == session);
  CHECK(world.epoch(id) == 1);
}

TEST_CASE("a directory that ends is not told of lost nodes any more") {
  mesh_world world(2);
  const auto peers = world.nodes[a].peers;
  CHECK(peers->watched());
  caf::anon_send(world.nodes[a].directory, stop_atom::value);
  world.run();
  CHECK(!peers->watched());
}
