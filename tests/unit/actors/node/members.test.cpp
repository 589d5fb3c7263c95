#include "actors/node/members.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

TEST_CASE("a member takes the place of an earlier one of its name") {
  members<int> parts;
  parts.join("device", 1);
  parts.join("router", 2);
  parts.join("device", 3);
  REQUIRE(parts.all().size() == 2);
  CHECK(parts.all()[0].name == "device");
  CHECK(parts.all()[0].handle == 3);
}

TEST_CASE("a node is ready when all of its parts are, and says which are not") {
  node_health health;
  health.add("device", "ready", "");
  CHECK(health.state == "ready");
  CHECK(health.reason.empty());
  health.add("router", "starting", "no worker");
  health.add("directory", "unresponsive", "");
  CHECK(health.state == "starting");
  CHECK(health.reason == "router is starting: no worker; directory is unresponsive");
}
