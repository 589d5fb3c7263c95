#include "actors/node/node.hpp"

#include "actors/trace/spawn_traced.hpp"
#include "messages/actor_error.hpp"
#include "messages/text.hpp"
#include "tests/unit/actors/node/scripted_part.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using namespace godwit::test;

namespace {

class world : public still_system {
 public:
  explicit world(std::function<void()> leave = {}, std::function<void(const std::string&)> failed = {}) {
    node_config config;
    config.failed = std::move(failed);
    config.incarnation_now = [this] { return incarnation; };
    config.fingerprint = "f";
    config.version = "1.2.3";
    config.capacity = 320;
    config.leave = std::move(leave);
    config.name = node_name("here");
    config.incarnation = "of the process";
    config.roles = {"gateway", "decode"};
    config.model = "toy";
    config.started_at = 42;
    node = spawn_node(system, config);
    stops.push_back(node);
  }
  void join(const std::string& name, const part_script& script = {}) {
    const auto part = spawn_part(system, name, script);
    stops.push_back(part);
    caf::anon_send(node, join_atom::value, name, part);
    scheduler.run();
  }
  std::string incarnation = "i";
  node_behaviour node;
};

} // namespace

TEST_CASE("a node shows its parts under the names by which they joined") {
  world w;
  w.join("device");
  w.join("router", {.state = "starting"});
  const auto answer = w.ask<letter<schema::NodeStatus>>(w.node, info_atom::value);
  REQUIRE(answer->has_value());
  const auto info = (**answer).read();
  CHECK(std::string(info.getName().cStr()) == "here");
  CHECK(std::string(info.getIncarnation().cStr()) == "i");
  CHECK(std::string(info.getState().cStr()) == "starting");
  CHECK(info.getRoles().size() == 2);
  CHECK(info.getStartedAt() == 42);
  CHECK(std::string(info.getFingerprint().cStr()) == "f");
  CHECK(std::string(info.getVersion().cStr()) == "1.2.3");
  CHECK(info.getCapacity() == 320);
  REQUIRE(info.getActors().size() == 2);
  CHECK(std::string(info.getActors()[1].getName().cStr()) == "router");
  CHECK(info.getActors()[0].getGauges().size() == 1);
  // It may have been stopped for a while.
  w.incarnation = "j";
  const auto later = w.ask<letter<schema::NodeStatus>>(w.node, info_atom::value);
  CHECK(std::string((**later).read().getIncarnation().cStr()) == "j");
}

TEST_CASE("a node that has no parts yet answers, and so does one with a part that does not") {
  world w;
  CHECK(w.ask<letter<schema::NodeStatus>>(w.node, info_atom::value)->has_value());
  w.join("device", {.answers = false});
  const auto answer = w.ask<letter<schema::ActorStatus>>(w.node, status_atom::value);
  CHECK(!answer->has_value());
  w.pass(2'001);
  REQUIRE(answer->has_value());
  CHECK(std::string((**answer).read().getState().cStr()) == "starting");
  CHECK(std::string((**answer).read().getReason().cStr()) == "device is unresponsive: it does not answer");
}

TEST_CASE("a part that has stopped makes the node not ready") {
  world w;
  w.join("device");
  caf::anon_send(w.stops.back(), stop_atom::value);
  w.scheduler.run();
  const auto answer = w.ask<letter<schema::ActorStatus>>(w.node, status_atom::value);
  CHECK(std::string((**answer).read().getReason().cStr()).starts_with("device is stopped"));
}

TEST_CASE("a node drains its parts from the last to the first, one after the other") {
  std::vector<std::string> log;
  world w;
  w.join("device", {.log = &log});
  w.join("router", {.answers = false, .log = &log});
  w.join("directory", {.remaining = 3, .log = &log});
  const auto answer = w.ask<letter<schema::Drained>>(w.node, drain_atom::value);
  CHECK(log == std::vector<std::string>{"drain directory", "drain router"});
  CHECK(!answer->has_value());
  w.pass(60'001);
  CHECK(log.back() == "drain device");
  REQUIRE(answer->has_value());
  CHECK((**answer).read().getRemaining() == 4);
  w.pass(2'001);
  log.clear();
}

TEST_CASE("a node that is asked to leave says so to its process, and is draining") {
  int asked = 0;
  world w([&] { ++asked; });
  w.join("device");
  const auto answer = w.ask<letter<schema::ActorStatus>>(w.node, leave_atom::value);
  REQUIRE(answer->has_value());
  CHECK(std::string((**answer).read().getState().cStr()) == "draining");
  CHECK(asked == 1);
  const auto after = w.ask<letter<schema::NodeStatus>>(w.node, info_atom::value);
  CHECK(std::string((**after).read().getState().cStr()) == "draining");

  world alone;
  CHECK_FALSE(alone.ask<letter<schema::ActorStatus>>(alone.node, leave_atom::value)->has_value());
}

TEST_CASE("a node that was told of a lost cause has failed, tells its process, and drains what is left") {
  std::vector<std::string> log;
  std::vector<std::string> told;
  world w({}, [&](const std::string& why) { told.push_back(why); });
  w.join("device", {.log = &log});
  caf::anon_send(w.node, escalate_atom::value, std::string("device"), std::string("it ended too often"));
  w.scheduler.run();
  const auto answer = w.ask<letter<schema::ActorStatus>>(w.node, status_atom::value);
  CHECK(std::string((**answer).read().getState().cStr()) == "failed");
  CHECK(
    std::string((**answer).read().getReason().cStr()) == "device cannot be kept running: it ended too often");
  CHECK(told == std::vector<std::string>{"device cannot be kept running: it ended too often"});
  // Others are to let finish there what runs there.
  CHECK(w.ask<letter<schema::Drained>>(w.node, drain_atom::value)->has_value());
  CHECK(log == std::vector<std::string>{"drain device"});
  const auto after = w.ask<letter<schema::ActorStatus>>(w.node, status_atom::value);
  CHECK(std::string((**after).read().getState().cStr()) == "draining");
  CHECK(
    std::string((**after).read().getReason().cStr()) == "device cannot be kept running: it ended too often");
  w.finish();
}

namespace {

/// A part whose letters can be traced.
common_actor spawn_traced_part(caf::actor_system& system) {
  return spawn_traced(system, [](common_actor::pointer self) -> common_actor::behavior_type {
    return {
      [](status_atom) { return letter<schema::ActorStatus>(); },
      [](drain_atom) { return letter<schema::Drained>(); },
      [self](stop_atom) { self->quit(); },
    };
  });
}

letter<schema::TraceRequest> trace_of(const char* actor, std::uint32_t letters, std::uint32_t milliseconds) {
  return letter<schema::TraceRequest>::make([&](schema::TraceRequest::Builder b) {
    b.setActor(actor);
    b.setLetters(letters);
    b.setMilliseconds(milliseconds);
  });
}

} // namespace

TEST_CASE("a node tells what letters come to one of its parts, up to a number and a time") {
  world w;
  const auto part = spawn_traced_part(w.system);
  w.stops.push_back(part);
  caf::anon_send(w.node, join_atom::value, std::string("device"), part);
  w.scheduler.run();

  const auto full = w.ask<letter<schema::Trace>>(w.node, trace_of("device", 2, 10'000));
  CHECK_FALSE(full->has_value());
  // One at a time.
  CHECK_FALSE(w.ask<letter<schema::Trace>>(w.node, trace_of("device", 1, 1'000))->has_value());
  for (int i = 0; i < 3; ++i)
    w.ask<letter<schema::ActorStatus>>(part, status_atom::value);
  REQUIRE(full->has_value());
  CHECK((**full).read().getLetters().size() == 2);
  CHECK((**full).read().getLetters()[0].getTypes() == "status");
  CHECK((**full).read().getLetters()[0].getKind() == "request");
  CHECK((**full).read().getActor() == "device");

  // What came before it began, and after its end, is not there.
  const auto timed = w.ask<letter<schema::Trace>>(w.node, trace_of("device", 100, 5'000));
  w.pass(4'999);
  CHECK_FALSE(timed->has_value());
  w.ask<letter<schema::ActorStatus>>(part, status_atom::value);
  w.pass(2);
  REQUIRE(timed->has_value());
  CHECK((**timed).read().getLetters().size() == 1);
  w.pass(10'000); // the first one's time
}

TEST_CASE(
  "a session is traced where its directory has it, and is not found elsewhere or under another tenant") {
  world w;
  const auto session = spawn_traced_part(w.system);
  const auto distant = spawn_part(w.system, "distant", {});
  w.stops.push_back(session);
  w.stops.push_back(distant);
  const directory_actor directory =
    w.system.spawn([session, distant](directory_actor::pointer self) -> directory_actor::behavior_type {
      return {
        [](const letter<schema::SessionSettings>&) { return letter<schema::SessionInfo>(); },
        [=](const letter<schema::LocateRequest>& mail) -> caf::result<session_actor> {
          if (text_of(mail.read().getTenant()) != "t")
            return to_caf_error({errc::not_found, "no such session", {}, "session_not_found"});
          return caf::actor_cast<session_actor>(mail.read().getSession() == "ses_here" ? session : distant);
        },
        [](const letter<schema::ListRequest>&) { return letter<schema::SessionList>(); },
        [](erase_atom, const letter<schema::LocateRequest>&) { return letter<schema::SessionInfo>(); },
        [](status_atom) { return letter<schema::ActorStatus>(); },
        [](drain_atom) { return letter<schema::Drained>(); },
        [self](stop_atom) { self->quit(); },
      };
    });
  w.stops.push_back(directory);
  const auto traced = [&](const char* session_id, const char* tenant) {
    return w.ask<letter<schema::Trace>>(
      w.node, letter<schema::TraceRequest>::make([&](schema::TraceRequest::Builder b) {
        b.setActor(session_id);
        b.setTenant(tenant);
        b.setLetters(1);
        b.setMilliseconds(1'000);
      }));
  };
  const auto before = traced("ses_here", "t");
  w.ask<letter<schema::ActorStatus>>(session, status_atom::value);
  CHECK_FALSE(before->has_value());

  caf::anon_send(w.node, join_atom::value, std::string(directory_part), common_actor(directory));
  const auto here = traced("ses_here", "t");
  const auto elsewhere = traced("ses_there", "t");
  const auto foreign = traced("ses_here", "u");
  w.ask<letter<schema::ActorStatus>>(session, status_atom::value);
  REQUIRE(here->has_value());
  CHECK((**here).read().getActor() == "ses_here");
  REQUIRE((**here).read().getLetters().size() == 1);
  CHECK((**here).read().getLetters()[0].getTypes() == "status");
  w.pass(20'000);
  CHECK_FALSE(elsewhere->has_value());
  CHECK_FALSE(foreign->has_value());
}

TEST_CASE("what cannot be traced is refused, and a node that stops ends its traces") {
  world w;
  w.join("device");
  CHECK_FALSE(w.ask<letter<schema::Trace>>(w.node, trace_of("device", 2, 10))->has_value());
  CHECK_FALSE(w.ask<letter<schema::Trace>>(w.node, trace_of("nobody", 2, 10))->has_value());
  const auto part = spawn_traced_part(w.system);
  w.stops.push_back(part);
  caf::anon_send(w.node, join_atom::value, std::string("router"), part);
  const auto open = w.ask<letter<schema::Trace>>(w.node, trace_of("router", 2, 10'000));
  caf::anon_send(w.node, stop_atom::value);
  w.scheduler.run();
  CHECK(open->has_value());
}
