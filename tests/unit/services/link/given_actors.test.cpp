#include "services/link/given_actors.hpp"

#include "messages/catalogue.hpp"
#include "tests/unit/actors/node/scripted_part.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using namespace godwit::link;

namespace {

struct world : test::still_system {
  const interface_codec& codec = codec_of<common_actor>();
  given_actors given{2};

  caf::strong_actor_ptr spawn() {
    stops.push_back(test::spawn_part(system, "part", {}));
    return caf::actor_cast<caf::strong_actor_ptr>(stops.back());
  }
  result<given_actors::number> give(const char* node, const caf::strong_actor_ptr& actor) {
    return given.give(node, actor, codec);
  }
};

} // namespace

TEST_CASE("an actor that was given to a node twice is held until the node drops it twice") {
  world w;
  const auto actor = w.spawn();
  w.given.node_up("n");
  const auto first = w.give("n", actor);
  const auto second = w.give("n", actor);
  REQUIRE((first && second));
  CHECK(first->fresh);
  CHECK_FALSE(second->fresh);
  CHECK(first->id == second->id);
  CHECK(w.given.find(first->id, "n")->actor == actor);
  CHECK_FALSE(w.given.find(first->id, "m"));
  CHECK_FALSE(w.given.release(first->id, "m", 2));
  CHECK_FALSE(w.given.release(first->id, "n", 1));
  CHECK(w.given.holds(first->id));
  // A node that drops more than it has drops what it has.
  const auto gone = w.given.release(first->id, "n", 5);
  REQUIRE(gone);
  CHECK(gone->what.actor == actor);
  CHECK(w.given.size() == 0);
  CHECK_FALSE(w.given.release(first->id, "n", 1));
  CHECK(w.give("n", actor)->id != first->id);
}

TEST_CASE("nothing is given to a node that is not there, and what a lost one held is let go") {
  world w;
  const auto actor = w.spawn();
  CHECK(w.give("n", actor).error().code == errc::unavailable);
  CHECK_FALSE(w.given.node_lost("n").first);
  w.given.node_up("n");
  w.given.node_up("m");
  const auto held = w.give("n", actor);
  const auto other = w.give("m", actor);
  REQUIRE((held && other));
  CHECK(held->id != other->id);
  const auto [was_there, gone] = w.given.node_lost("n");
  CHECK(was_there);
  REQUIRE(gone.size() == 1);
  CHECK(gone[0].node == "n");
  CHECK_FALSE(w.given.holds(held->id));
  CHECK(w.given.holds(other->id));
  CHECK(w.give("n", actor).error().code == errc::unavailable);
}

TEST_CASE("actors that are given are bounded, go when they end, and all go at the end") {
  world w;
  w.given.node_up("n");
  const auto one = w.give("n", w.spawn());
  const auto two = w.give("n", w.spawn());
  REQUIRE((one && two));
  const auto third = w.spawn();
  CHECK(w.give("n", third).error().code == errc::resource_exhausted);
  CHECK(w.given.ended(one->id)->node == "n");
  CHECK_FALSE(w.given.ended(one->id));
  CHECK(w.give("n", third));
  CHECK(w.given.close().size() == 2);
  CHECK(w.given.size() == 0);
  CHECK(w.give("n", third).error().code == errc::draining);
}
