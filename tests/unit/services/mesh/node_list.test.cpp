#include "services/mesh/node_list.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using namespace std::chrono_literals;

TEST_CASE("the list of nodes is in the order of their names, each as it is seen") {
  const auto status = letter<schema::NodeStatus>::make([](schema::NodeStatus::Builder b) {
    b.setName("another");
    b.setState("ready");
    b.initRoles(1).set(0, "router");
    b.setFingerprint("f");
    b.setLink("self"); // its own view of itself
    b.initActors(1)[0].setName("router");
  });
  const auto list = make_node_list({
    {node_name("delta"), "away", "it is silent", 0us, {}},
    {node_name("beta"), "up", {}, 1500us, status},
    {node_name("gamma"), "up", "it does not answer", 20us, {}},
    {node_name("alpha"), "self", {}, 0us, {}},
  });
  const auto nodes = list.read().getNodes();
  REQUIRE(nodes.size() == 4);
  CHECK(nodes[0].getName() == "alpha");
  CHECK(nodes[0].getLink() == "self");
  CHECK(nodes[0].getState() == "starting");
  CHECK(nodes[1].getName() == "beta");
  CHECK(nodes[1].getLink() == "up");
  CHECK(nodes[1].getState() == "ready");
  CHECK(nodes[1].getRoles()[0] == "router");
  CHECK(nodes[1].getFingerprint() == "f");
  CHECK(nodes[1].getActors()[0].getName() == "router");
  CHECK(nodes[1].getRoundTrip() == Approx(0.0015));
  CHECK(nodes[2].getName() == "delta");
  CHECK(nodes[2].getLink() == "away");
  CHECK(nodes[2].getState() == "away");
  CHECK(nodes[2].getWhy() == "it is silent");
  CHECK(nodes[3].getName() == "gamma");
  CHECK(nodes[3].getState() == "unresponsive");
  CHECK(nodes[3].getWhy() == "it does not answer");
}
