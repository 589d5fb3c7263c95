// What a whole node does when one of its actors dies.

#include "tests/unit/services/daemon/tiny_node.hpp"

using namespace godwit;
using namespace godwit::test;

TEST_CASE("a device that dies is started again, and the turn goes on as if nothing had happened") {
  tiny_node node;
  const auto calm = node.open_session(60);
  node.say(calm, "Hello");
  const auto expected = node.tokens_of_turn(calm);
  REQUIRE(expected.size() == 60);

  const auto session = node.open_session(60);
  node.faults->steps_left = 30;
  node.say(session, "Hello");
  CHECK(node.tokens_of_turn(session) == expected);
  CHECK(node.faults->steps_left == -1);
  node.wait_until_ready();
  CHECK(node.restarts_of("device") == 1);
  CHECK(node.restarts_of("directory") == 0);
  // Its session stayed where it was.
  CHECK(node.events(session).find("event: session.recovering") == std::string::npos);
}

TEST_CASE("a completion goes on while the device and the directory die and are started again") {
  tiny_node node;
  const auto expected = text_of_stream(tiny_node::whole_stream(node.port()));
  REQUIRE_FALSE(expected.empty());
  node.faults->steps_left = 40; // of the device; before that it waits
  node.faults->hold_in = 20;
  http::test::raw_client stream(node.port());
  stream.send(completion_request());
  tiny_node::until([&] { return node.faults->held.load(); });
  node.faults->list = true;
  CHECK_FALSE(node.ask("GET", "/v1/sessions").starts_with("HTTP/1.1 200 "));
  tiny_node::until([&] { return node.restarts_of("directory") == 1; });
  node.faults->held = false;
  CHECK(text_of_stream(tiny_node::whole_stream(stream)) == expected);
  CHECK(node.faults->steps_left == -1);
  CHECK(node.restarts_of("device") == 1);
}

TEST_CASE("a directory that dies is started again, and takes up the turns that ran") {
  tiny_node node;
  const auto calm = node.open_session(300);
  node.say(calm, "Hello");
  const auto expected = node.tokens_of_turn(calm);

  const auto session = node.open_session(300);
  node.faults->slow = true;
  node.say(session, "Hello");
  // What the old session still wants to write comes when another owner has it, and is refused.
  node.records->inner.hold();
  tiny_node::until([&] { return node.records->inner.waiting() > 0; });
  node.faults->list = true;
  CHECK_FALSE(node.ask("GET", "/v1/sessions").starts_with("HTTP/1.1 200 "));
  tiny_node::until([&] { return node.restarts_of("directory") == 1; });
  node.wait_until_ready();
  node.records->inner.resume();
  node.faults->slow = false;
  CHECK(node.tokens_of_turn(session) == expected);
  CHECK(node.restarts_of("device") == 0);
  CHECK(node.ask("GET", "/v1/sessions").starts_with("HTTP/1.1 200 "));
}

TEST_CASE("a node whose part dies again and again is not ready any more, and names the part") {
  tiny_node node;
  for (int i = 0; i < 6; ++i) {
    node.faults->list = true;
    tiny_node::until([&] {
      node.ask("GET", "/v1/sessions");
      return !node.faults->list;
    });
  }
  std::string told;
  tiny_node::until([&] {
    told = node.ask("GET", "/readyz");
    return told.find("\"failed\"") != std::string::npos;
  });
  CHECK(told.starts_with("HTTP/1.1 503 "));
  CHECK(told.find("directory") != std::string::npos);
}
