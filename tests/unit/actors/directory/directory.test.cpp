#include "actors/directory/directory.hpp"
#include "tests/unit/actors/session/actor_world.hpp"

using namespace godwit;

namespace {

using texts = std::vector<std::string>;

class directory_world : public actor_world {
 public:
  explicit directory_world(directory_limits with = {}) : limits(with) { start(); }

  void start() {
    directory = spawn_directory(system, {config, limits, false});
    stop_at_end(directory);
    run();
  }
  void restart() {
    caf::anon_send(directory, stop_atom::value);
    run();
    generations.clear();
    config.incarnation += "+";
    start();
  }
  static letter<schema::LocateRequest> named(const std::string& id, const std::string& tenant) {
    return letter<schema::LocateRequest>::make([&](schema::LocateRequest::Builder b) {
      b.setSession(id);
      b.setTenant(tenant);
    });
  }
  std::string create(const std::string& tenant = "t", std::uint64_t ttl_s = 0) {
    const auto answer = ask<letter<schema::SessionInfo>>(directory, wanted_session(tenant, 1, 12, ttl_s));
    REQUIRE(answer->has_value());
    REQUIRE(**answer);
    return (***answer).read().getId().cStr();
  }
  result<session_actor> find(const std::string& id, const std::string& tenant = "t") {
    const auto answer = ask<session_actor>(directory, named(id, tenant));
    REQUIRE(answer->has_value());
    return **answer;
  }
  result<letter<schema::SessionInfo>> erase(const std::string& id, const std::string& tenant = "t") {
    const auto answer = ask<letter<schema::SessionInfo>>(directory, erase_atom::value, named(id, tenant));
    REQUIRE(answer->has_value());
    return **answer;
  }
  letter<schema::SessionList> list(
    const std::string& after, std::uint32_t limit, const std::string& tenant = "t") {
    const auto answer = ask<letter<schema::SessionList>>(
      directory, letter<schema::ListRequest>::make([&](schema::ListRequest::Builder b) {
        b.setTenant(tenant);
        b.setLimit(limit);
        b.setAfter(after);
      }));
    REQUIRE(answer->has_value());
    REQUIRE(**answer);
    return ***answer;
  }
  double gauge(const std::string& name) {
    const auto answer = ask<letter<schema::ActorStatus>>(directory, status_atom::value);
    for (const auto one : (***answer).read().getGauges())
      if (one.getName() == name)
        return one.getValue();
    return -1;
  }
  std::string state() {
    const auto answer = ask<letter<schema::ActorStatus>>(directory, status_atom::value);
    return (***answer).read().getState().cStr();
  }

  directory_limits limits;
  directory_actor directory;
};

texts ids_of(const letter<schema::SessionList>& list) {
  texts out;
  for (const auto session : list.read().getSessions())
    out.emplace_back(session.getId().cStr());
  return out;
}

} // namespace

TEST_CASE("a session that never was, that is another tenant's or erased is missed in the same words") {
  directory_world world;
  const auto id = world.create();
  const auto erased = world.create();
  const auto never = "ses_" + std::string(32, '0');
  REQUIRE(world.erase(erased));
  const error missed{errc::not_found, "there is no such session", {}, "session_not_found"};
  for (const auto& name : {std::string("nope"), never, erased}) {
    CHECK(world.find(name).error() == missed);
    CHECK(world.erase(name).error() == missed);
  }
  CHECK(world.find(id, "other").error() == missed);
  CHECK(world.erase(id, "other").error() == missed);
  world.restart();
  CHECK(world.find(id, "other").error() == missed);
  CHECK(world.find(erased).error() == missed);
}

TEST_CASE("a session is opened in the journal and found by its tenant only") {
  directory_world world;
  const auto id = world.create();
  CHECK(is_session_id(id));
  CHECK(world.disk->sessions.at(session_id(id)).records.size() == 2);
  REQUIRE(world.find(id));
  CHECK(*world.find(id) == *world.find(id));
  CHECK(world.find(id, "other").error().code == errc::not_found);
  CHECK(world.find("ses_1").error().code == errc::not_found);
  CHECK(world.find("ses_" + std::string(32, '0')).error().code == errc::not_found);
  world.restart();
  CHECK(world.find(id, "other").error().code == errc::not_found);
  REQUIRE(world.find(id));
  CHECK(std::string(world.info(*world.find(id)).read().getSettings().getModel().cStr()) == "toy");
}

TEST_CASE("a model that is not served is not found, and a full disk opens nothing") {
  directory_world world;
  const auto other = letter<schema::SessionSettings>::make([](auto b) { b.setModel("gpt"); });
  const auto answer = world.ask<letter<schema::SessionInfo>>(world.directory, other);
  CHECK((**answer).error().code == errc::not_found);
  CHECK((**answer).error().param == "model");
  world.log->fail_next(memory_journal::call::open, {errc::resource_exhausted, "the disk is full", "", ""});
  const auto full = world.ask<letter<schema::SessionInfo>>(world.directory, actor_world::wanted_session("t"));
  CHECK((**full).error().code == errc::resource_exhausted);
}

TEST_CASE("sessions whose turn was running are revived at start, the others when they are asked for") {
  directory_world world;
  const auto idle = world.create();
  const auto busy = world.create();
  world.post(*world.find(busy), "Hello");
  world.work(2);
  world.restart();
  CHECK(world.state() == "ready");
  CHECK(world.gauge("recovered_sessions") == 1);
  CHECK(world.gauge("live_sessions") == 1);
  CHECK(world.generations.size() == 1);
  world.settle();
  CHECK(std::string(world.info(*world.find(busy)).read().getStatus().cStr()) == "idle");
  CHECK(world.info(*world.find(busy)).read().getTurns() == 1);
  REQUIRE(world.find(idle));
  CHECK(world.gauge("live_sessions") == 2);
}

TEST_CASE("recovery waits for a journal that cannot be read yet") {
  directory_world world;
  const auto busy = world.create();
  world.post(*world.find(busy), "Hello");
  world.log->fail_next(memory_journal::call::list, {errc::io, "no", "", ""});
  world.restart();
  CHECK(world.state() == "starting");
  world.pass(1'000);
  CHECK(world.state() == "ready");
  CHECK(world.generations.size() == 1);
}

TEST_CASE("a list has a tenant's sessions in the order of their ids, page by page") {
  directory_world world;
  texts mine;
  for (int i = 0; i < 5; ++i) {
    mine.push_back(world.create("t"));
    world.create("other");
  }
  std::sort(mine.begin(), mine.end());
  world.restart();
  texts got;
  std::string after;
  int pages = 0;
  while (true) {
    const auto page = world.list(after, 2);
    for (const auto& id : ids_of(page))
      got.push_back(id);
    ++pages;
    if (!page.read().getHasMore())
      break;
    after = page.read().getNext().cStr();
    CHECK(after == got.back());
  }
  CHECK(got == mine);
  CHECK(pages == 3);
  CHECK(ids_of(world.list("", 100, "nobody")).empty());
}

TEST_CASE("a list that would look too long gives a short page and where to go on") {
  directory_limits limits;
  limits.list_scan = 256;
  directory_world world(limits);
  for (int i = 0; i < 300; ++i)
    world.create("many");
  const auto page = world.list("", 10, "t");
  CHECK(ids_of(page).empty());
  CHECK(page.read().getHasMore());
  const auto next = world.list(page.read().getNext().cStr(), 10, "t");
  CHECK(!next.read().getHasMore());
}

TEST_CASE("an erased session is gone, its stream ends, and others do not notice") {
  directory_world world;
  const auto id = world.create();
  const auto other = world.create();
  const auto session = *world.find(id);
  const auto stream = world.subscribe(session, 100);
  world.post(session, "Hello");
  CHECK(world.erase(id, "other").error().code == errc::not_found);
  const auto info = world.erase(id);
  REQUIRE(info);
  CHECK(std::string(info->read().getStatus().cStr()) == "closed");
  CHECK(world.inboxes[stream].ended);
  CHECK(world.find(id).error().code == errc::not_found);
  CHECK(world.erase(id).error().code == errc::not_found);
  CHECK(!world.disk->sessions.contains(session_id(id)));
  CHECK(world.find(other));
}

TEST_CASE("a call that comes while a session is being erased waits, and does not find it") {
  directory_world world;
  const auto id = world.create();
  REQUIRE(world.find(id));
  world.log->hold();
  const auto erased = world.ask<letter<schema::SessionInfo>>(
    world.directory, erase_atom::value, directory_world::named(id, "t"));
  const auto found = world.ask<session_actor>(world.directory, directory_world::named(id, "t"));
  CHECK(!erased->has_value());
  CHECK(!found->has_value());
  world.log->resume();
  world.run();
  CHECK(**erased);
  CHECK((**found).error().code == errc::not_found);
}

TEST_CASE("a quarantined session is found, says so, and can be erased") {
  directory_world world;
  const auto id = world.create();
  world.log->damage(session_id(id), 2);
  CHECK(std::string(world.info(*world.find(id)).read().getStatus().cStr()) == "quarantined");
  world.pass(2'000);
  CHECK(world.gauge("live_sessions") == 0);
  CHECK(world.find(id, "other").error().code == errc::not_found);
  CHECK(std::string(world.info(*world.find(id)).read().getStatus().cStr()) == "quarantined");
  REQUIRE(world.erase(id));
  CHECK(world.find(id).error().code == errc::not_found);
}

TEST_CASE("idle sessions lose their actor after a while, busy ones keep it") {
  directory_limits limits;
  limits.idle_after = std::chrono::milliseconds(5'000);
  directory_world world(limits);
  const auto idle = world.create();
  const auto busy = world.create();
  REQUIRE(world.find(idle));
  world.post(*world.find(busy), "Hello");
  CHECK(world.gauge("live_sessions") == 2);
  for (int i = 0; i < 7; ++i)
    world.pass(1'000);
  CHECK(world.gauge("live_sessions") == 1);
  CHECK(world.find(idle));
  CHECK(world.gauge("live_sessions") == 2);
}

TEST_CASE("no more sessions than allowed have an actor") {
  directory_limits limits;
  limits.live = 2;
  directory_world world(limits);
  const texts ids{world.create(), world.create(), world.create()};
  REQUIRE(world.find(ids[0]));
  REQUIRE(world.find(ids[1]));
  CHECK(world.find(ids[2]).error().code == errc::overloaded);
}

TEST_CASE("expired sessions are closed by the tick, and erased when they were kept long enough") {
  directory_limits limits;
  limits.keep_expired = std::chrono::milliseconds(3'600'000);
  limits.idle_after = std::chrono::milliseconds(10'000);
  directory_world world(limits);
  const auto id = world.create("t", 60);
  world.pass(59'000);
  CHECK(world.disk->sessions.at(session_id(id)).records.size() == 2);
  world.pass(2'000);
  world.pass(1'000);
  CHECK(world.disk->sessions.at(session_id(id)).records.back().record.read().isClosed());
  CHECK(std::string(world.info(*world.find(id)).read().getStatus().cStr()) == "closed");
  for (int i = 0; i < 20; ++i)
    world.pass(1'000);
  CHECK(world.gauge("live_sessions") == 0);
  world.pass(3'600'000);
  world.pass(1'000);
  CHECK(!world.disk->sessions.contains(session_id(id)));
}

TEST_CASE("draining waits for running turns, and refuses new work") {
  directory_world world;
  const auto id = world.create();
  const auto other = world.create();
  world.post(*world.find(id), "Hello");
  const auto drained = world.ask<letter<schema::Drained>>(world.directory, drain_atom::value);
  CHECK(!drained->has_value());
  CHECK(world.state() == "draining");
  const auto refused =
    world.ask<letter<schema::SessionInfo>>(world.directory, actor_world::wanted_session("t"));
  CHECK((**refused).error().code == errc::draining);
  CHECK(world.find(other).error().code == errc::draining);
  world.settle();
  REQUIRE(drained->has_value());
  CHECK((***drained).read().getRemaining() == 0);
  CHECK(world.disk->sessions.at(session_id(id)).records.back().record.read().isTurnEnded());
}

TEST_CASE("what does not end while draining is left to the next start, not cancelled") {
  directory_limits limits;
  limits.drain = std::chrono::milliseconds(2'000);
  directory_world world(limits);
  const auto id = world.create();
  const auto session = *world.find(id);
  world.post(session, "Hello");
  world.work(2);
  const auto stream = world.subscribe(session, 100);
  const auto drained = world.ask<letter<schema::Drained>>(world.directory, drain_atom::value);
  world.pass(2'001);
  REQUIRE(drained->has_value());
  CHECK((***drained).read().getRemaining() == 1);
  CHECK(world.abandoned == std::vector<schema::EndCause>{schema::EndCause::DRAINING});
  CHECK(world.disk->sessions.at(session_id(id)).head.running);
  CHECK(world.inboxes[stream].ended);
  CHECK(world.inboxes[stream].error == static_cast<int>(errc::draining));
  world.restart();
  world.settle();
  CHECK(std::string(world.info(*world.find(id)).read().getStatus().cStr()) == "idle");
}
