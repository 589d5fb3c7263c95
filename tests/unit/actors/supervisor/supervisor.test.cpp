#include "actors/supervisor/supervisor.hpp"
#include "actors/node/node.hpp"
#include "messages/actor_error.hpp"
#include "tests/unit/actors/node/scripted_part.hpp"
#include "tests/unit/actors/session/fake_time.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <stdexcept>

using namespace godwit;
using namespace godwit::test;

namespace {

node_config toy_node() {
  node_config out;
  out.name = node_name("here");
  out.incarnation = "i";
  out.model = "toy";
  return out;
}

/// A supervisor of four parts. The router uses the device, the directory the router; nobody the tokenizer.
class world : public still_system {
 public:
  world() {
    node = spawn_node(system, toy_node());
    supervisor_config config;
    config.node = node;
    config.time = time;
    const auto add = [&](const std::string& name, std::vector<std::string> uses, restart_limits limits) {
      config.children.push_back({name,
        [this, name](caf::actor_system& in) {
          log.push_back("start " + name);
          if (name == broken)
            throw std::runtime_error("no memory");
          current[name] = spawn_part(in, name, {.log = &log});
          return current[name];
        },
        name == quiet ? restart_when::abnormal : restart_when::always, std::move(uses), limits});
    };
    const restart_limits two{
      2, std::chrono::milliseconds(10'000), std::chrono::milliseconds(100), std::chrono::milliseconds(1'000)};
    auto none = two;
    none.restarts = 0;
    add("device", {}, two);
    add("router", {"device"}, two);
    add("tokenizer", {}, none);
    add("directory", {"router"}, two);
    supervisor = spawn_supervisor(system, config);
    stops = {node, supervisor};
    scheduler.run();
    CHECK(take_log() == texts{"start device", "start router", "start tokenizer", "start directory"});
  }

  ~world() { finish(); }

  using texts = std::vector<std::string>;
  texts take_log() { return std::exchange(log, {}); }
  void kill(const std::string& name) {
    caf::anon_send_exit(current[name], caf::exit_reason::kill);
    scheduler.run();
  }
  void wait(std::int64_t milliseconds) {
    time->pass(milliseconds);
    pass(milliseconds);
  }
  std::string node_state() {
    const auto answer = ask<letter<schema::ActorStatus>>(node, status_atom::value);
    return (**answer).read().getState().cStr();
  }
  letter<schema::ActorStatus> status() {
    return **ask<letter<schema::ActorStatus>>(supervisor, status_atom::value);
  }

  std::shared_ptr<fake_time> time = std::make_shared<fake_time>();
  texts log;
  std::map<std::string, common_actor> current;
  std::string broken;
  std::string quiet = "directory"; ///< may end of itself
  node_actor node;
  supervisor_actor supervisor;
};

} // namespace

TEST_CASE("a part that dies is started again, and those that use it too, and nothing else") {
  world w;
  CHECK(w.node_state() == "ready");
  w.kill("router");
  CHECK(w.take_log() == world::texts{"stop directory"});
  CHECK(std::string(w.status().read().getState().cStr()) == "starting");
  CHECK(std::string(w.status().read().getReason().cStr()) == "router is being restarted");
  w.wait(100);
  CHECK(w.take_log() == world::texts{"start router", "start directory"});
  CHECK(w.node_state() == "ready");
  const auto now = w.status();
  const auto gauges = now.read().getGauges();
  CHECK(gauges[0].getValue() == 0);
  CHECK(gauges[1].getValue() == 1);
  CHECK(gauges[2].getValue() == 0);
  CHECK(gauges[3].getValue() == 0);

  // Whoever uses one that uses it is affected as well.
  w.kill("device");
  CHECK(w.take_log() == world::texts{"stop directory", "stop router"});
  w.wait(100);
  CHECK(w.take_log() == world::texts{"start device", "start router", "start directory"});
  w.kill("directory");
  w.wait(100);
  CHECK(w.take_log() == world::texts{"start directory"});
  CHECK(w.node_state() == "ready");
}

TEST_CASE("two parts that die are each started when their time comes") {
  world w;
  w.kill("directory");
  w.wait(50);
  w.kill("device");
  CHECK(w.take_log() == world::texts{"stop router"});
  CHECK(std::string(w.status().read().getReason().cStr())
        == "device is being restarted; directory is being restarted");
  // The directory's time is over, but what it uses is not there.
  w.wait(50);
  CHECK(w.take_log().empty());
  w.wait(50);
  CHECK(w.take_log() == world::texts{"start device", "start router", "start directory"});
  CHECK(w.node_state() == "ready");
}

TEST_CASE("a part that dies again and again makes the node fail, and what does not use it goes on") {
  world w;
  for (int i = 0; i < 2; ++i) {
    w.kill("router");
    w.wait(1'000);
  }
  w.take_log();
  w.kill("router");
  CHECK(w.take_log() == world::texts{"stop directory"});
  w.wait(5'000);
  CHECK(w.take_log().empty());
  CHECK(w.node_state() == "failed");
  CHECK(std::string(w.status().read().getState().cStr()) == "failed");
  // What is left is drained, the last one first.
  REQUIRE(w.ask<letter<schema::Drained>>(w.supervisor, drain_atom::value)->has_value());
  CHECK(w.take_log() == world::texts{"drain tokenizer", "drain device"});
}

TEST_CASE("each part has limits of its own") {
  world w;
  w.kill("tokenizer");
  CHECK(w.node_state() == "failed");
  CHECK(w.take_log().empty());
}

TEST_CASE("a part that may end of itself is not started again when it does") {
  world w;
  caf::anon_send(w.current["directory"], stop_atom::value);
  w.scheduler.run();
  CHECK(w.take_log() == world::texts{"stop directory"});
  w.wait(5'000);
  CHECK(w.take_log().empty());
  CHECK(std::string(w.status().read().getState().cStr()) == "ready");
}

TEST_CASE("a part that cannot be started is tried again") {
  world v;
  v.broken = "device";
  v.kill("device");
  v.wait(100);
  CHECK(v.take_log() == world::texts{"stop directory", "stop router", "start device"});
  v.broken = "";
  v.wait(1'000);
  CHECK(v.take_log() == world::texts{"start device", "start router", "start directory"});
  CHECK(v.node_state() == "ready");
}

TEST_CASE("draining goes from the last part to the first, and nothing is started again") {
  world w;
  const auto answer = w.ask<letter<schema::Drained>>(w.supervisor, drain_atom::value);
  REQUIRE(answer->has_value());
  CHECK(w.take_log() == world::texts{"drain directory", "drain tokenizer", "drain router", "drain device"});
  w.kill("router");
  w.wait(5'000);
  CHECK(w.take_log().empty());
}

TEST_CASE("a restart whose time comes while the node drains is none") {
  world w;
  w.kill("router");
  REQUIRE(w.ask<letter<schema::Drained>>(w.supervisor, drain_atom::value)->has_value());
  CHECK(w.take_log() == world::texts{"stop directory", "drain tokenizer", "drain device"});
  w.wait(5'000);
  CHECK(w.take_log().empty());
}

TEST_CASE("a part has as long to drain as the configuration says") {
  still_system alone;
  const auto node = spawn_node(alone.system, toy_node());
  supervisor_config config;
  config.node = node;
  config.time = std::make_shared<fake_time>();
  config.drain_timeout = std::chrono::seconds(300);
  std::vector<std::string> log;
  config.children.push_back({"directory",
    [&](caf::actor_system& in) { return spawn_part(in, "directory", {.answers = false, .log = &log}); }});
  const auto supervisor = spawn_supervisor(alone.system, config);
  alone.stops = {node, supervisor};
  alone.scheduler.run();
  const auto answer = alone.ask<letter<schema::Drained>>(supervisor, drain_atom::value);
  CHECK(log == std::vector<std::string>{"drain directory"});
  alone.pass(299'000);
  CHECK_FALSE(answer->has_value());
  alone.pass(2'000);
  REQUIRE(answer->has_value());
  CHECK((**answer).read().getRemaining() == 1);
  alone.finish();
}

TEST_CASE("stopping stops the parts from the last to the first") {
  world w;
  caf::anon_send(w.supervisor, stop_atom::value);
  w.scheduler.run();
  CHECK(w.take_log() == world::texts{"stop directory", "stop tokenizer", "stop router", "stop device"});
}
