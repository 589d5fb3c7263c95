// Nodes of one process that have different roles and talk over sockets.

#include "tests/unit/services/daemon/tiny_mesh.hpp"
#include "tests/unit/services/daemon/tiny_node.hpp"

#include <memory>

using namespace godwit;
using namespace godwit::test;

namespace {

nlohmann::json tokens_alone(std::uint32_t count) {
  tiny_node alone;
  const auto session = alone.open_session(count);
  alone.say(session, "Hello");
  return alone.tokens_of_turn(session);
}

double gauge(const tiny_node& of, const char* node, const char* actor, const char* name) {
  const auto listed = tiny_node::body_of(of.ask("GET", std::string("/v1/actors?node=") + node));
  for (const auto& each : listed["data"])
    if (each["name"] == actor)
      return each["gauges"].value(name, -1.0); // none while it is being started again
  return -1.0;
}

} // namespace

TEST_CASE("a worker on another node gives the tokens that one node gives") {
  const auto expected = tokens_alone(60);
  const tiny_mesh mesh{"front", "work"};
  tiny_node front(mesh.settings("front", front_roles), false);
  // Its own parts may still be starting.
  tiny_node::until(
    [&] { return front.ask("GET", "/readyz").find("no worker is there") != std::string::npos; });
  const tiny_node work(mesh.settings("work", worker_roles));
  front.wait_until_ready();
  const auto session = front.open_session(60);
  front.say(session, "Hello");
  CHECK(front.tokens_of_turn(session) == expected);
  CHECK(work.ask("GET", "/v1/sessions").find("no_gateway") != std::string::npos);

  const auto nodes = tiny_node::body_of(work.ask("GET", "/v1/nodes"));
  REQUIRE(nodes["data"].size() == 2);
  CHECK(nodes["data"][0]["name"] == "front");
  CHECK(nodes["data"][0]["link"] == "up");
  CHECK(nodes["data"][1]["link"] == "self");
}

TEST_CASE("a device that dies on another node is started again, and the turn goes on") {
  const auto expected = tokens_alone(60);
  const tiny_mesh mesh{"front", "work"};
  tiny_node front(mesh.settings("front", front_roles), false);
  const tiny_node work(mesh.settings("work", worker_roles));
  front.wait_until_ready();
  const auto session = front.open_session(60);
  work.faults->steps_left = 30;
  front.say(session, "Hello");
  CHECK(front.tokens_of_turn(session) == expected);
  CHECK(work.faults->steps_left == -1);
  CHECK(work.restarts_of("device") == 1);
}

TEST_CASE("a turn goes on with another worker when the first one is gone") {
  const auto expected = tokens_alone(300);
  const tiny_mesh mesh{"front", "one", "two"};
  tiny_node front(mesh.settings("front", front_roles), false);
  auto one = std::make_unique<tiny_node>(mesh.settings("one", worker_roles));
  front.wait_until_ready();
  one->faults->slow = true;
  const auto session = front.open_session(300);
  front.say(session, "Hello");
  tiny_node::until([&] { return front.events(session).find("event: token") != std::string::npos; });
  const tiny_node two(mesh.settings("two", worker_roles));
  one.reset();
  CHECK(front.tokens_of_turn(session) == expected);
}

TEST_CASE("the trace of a message goes to every node that works for its turn, also when it is begun again") {
  const std::string trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const tiny_mesh mesh{"door", "core", "prompts", "one", "two"};
  const auto settings = [&](const char* node, const char* roles) {
    auto out = mesh.settings(node, roles);
    out.handover_min_tokens = 64;
    return out;
  };
  tiny_node door(settings("door", "gateway"), false);
  const tiny_node core(settings("core", "session,router,tokenizer"), false);
  const tiny_node prompts(settings("prompts", "prefill"));
  auto one = std::make_unique<tiny_node>(settings("one", "decode,cache"));
  door.wait_until_ready();
  tiny_node::until([&] { return gauge(door, "core", "router", "prompt_nodes") == 1; });
  one->faults->slow = true;
  const auto session = door.open_session(300);
  door.say(session, std::string(400, 'q'), "traceparent: " + trace + "\r\n");
  const auto serves = [&](const tiny_node& node, const char* asker, const char* actor) {
    tiny_node::until([&] { return node.has_served(asker, actor, trace); });
  };
  serves(core, "door", "directory");
  // Behind the answer to the message.
  serves(*one, "core", "intake");
  serves(prompts, "one", "prompts");
  tiny_node::until([&] { return door.events(session).find("event: token") != std::string::npos; });
  const tiny_node two(settings("two", "decode,cache"));
  one.reset();
  door.tokens_of_turn(session);
  CHECK(two.has_served("core", "intake", trace));
  // Nothing is kept of it behind its end.
  tiny_node::until([] { return !trace_carrier::any(); });
}

TEST_CASE(
  "workers that are gone are forgotten, and a router that is started again has those that are there") {
  const auto expected = tokens_alone(60);
  const tiny_mesh mesh{"front", "one", "two"};
  tiny_node front(mesh.settings("front", front_roles), false);
  auto one = std::make_unique<tiny_node>(mesh.settings("one", worker_roles));
  const tiny_node two(mesh.settings("two", worker_roles));
  const auto there = [&] { return front.actors().workers(); };
  tiny_node::until([&] { return there().size() == 2; });
  one.reset();
  tiny_node::until([&] { return there() == std::vector{node_name("two")}; });

  // It ends as by a fault: only its supervisor may stop it.
  caf::anon_send(two.actors().others()->at<router_actor>(node_name("front"), "router"), stop_atom::value);
  tiny_node::until([&] { return front.restarts_of("router") == 1; });
  front.wait_until_ready();
  CHECK(there().size() == 1);
  const auto session = front.open_session(60);
  front.say(session, "Hello");
  CHECK(front.tokens_of_turn(session) == expected);
  CHECK(front.restarts_of("directory") == 0);
}

TEST_CASE("a gateway in front of everything is ready when the roles that it lacks are there") {
  const auto expected = tokens_alone(60);
  const tiny_mesh mesh{"door", "core"};
  tiny_node door(mesh.settings("door", "gateway"), false);
  const auto missing = door.ask("GET", "/readyz");
  CHECK(missing.find(R"("role":"session")") != std::string::npos);
  CHECK(missing.find(R"("role":"tokenizer")") != std::string::npos);
  const tiny_node core(mesh.settings("core", "session,router,tokenizer,prefill,decode,cache"));
  door.wait_until_ready();
  const auto session = door.open_session(60);
  door.say(session, "Hello");
  CHECK(door.tokens_of_turn(session) == expected);
  CHECK(core.ask("GET", "/v1/sessions/" + session).starts_with("HTTP/1.1 404 "));
}

TEST_CASE("prompts computed on one node and streams on another give the tokens that one node gives") {
  const std::string question(400, 'q');
  const auto alone = [&] {
    tiny_node whole;
    const auto session = whole.open_session(60);
    whole.say(session, question);
    return whole.tokens_of_turn(session);
  }();
  const tiny_mesh mesh{"front", "prompts", "streams"};
  const auto settings = [&](const char* node, const char* roles) {
    auto out = mesh.settings(node, roles);
    out.handover_min_tokens = 64;
    return out;
  };
  tiny_node front(settings("front", front_roles), false);
  auto prompts = std::make_unique<tiny_node>(settings("prompts", "prefill"));
  const tiny_node streams(settings("streams", "decode,cache"));
  front.wait_until_ready();
  tiny_node::until([&] { return gauge(front, "front", "router", "prompt_nodes") == 1; });
  const auto session = front.open_session(60);
  front.say(session, question);
  CHECK(front.tokens_of_turn(session) == alone);
  CHECK(gauge(front, "streams", "fetch", "orders") == 1);
  CHECK(gauge(front, "streams", "fetch", "brought_blocks") > 10);
  tiny_node::until([&] { return gauge(front, "prompts", "prompts", "kept_blocks") == 0; });

  // A device that dies is started again with its desk, and used again.
  prompts->faults->steps_left = 0;
  const auto second = front.open_session(60);
  front.say(second, "other " + question);
  const auto without = front.tokens_of_turn(second);
  tiny_node::until([&] { return prompts->restarts_of("device") == 1; });
  // Every node hears of the new desk in its own time: until then it computes for itself.
  char fresh = 'a';
  tiny_node::until([&] {
    const auto next = front.open_session(60);
    front.say(next, fresh++ + question);
    front.tokens_of_turn(next);
    return gauge(front, "streams", "fetch", "orders") == 3;
  });

  // Without the other node everything is computed where the streams are.
  prompts.reset();
  tiny_node::until([&] { return gauge(front, "front", "router", "prompt_nodes") == 0; });
  const auto fourth = front.open_session(60);
  front.say(fourth, "other " + question);
  CHECK(front.tokens_of_turn(fourth) == without);
}
