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
  result<std::uint64_t> give(const char* node, const caf::strong_actor_ptr& actor) {
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
  CHECK(*first == *second);
  CHECK(w.given.find(*first, "n")->actor == actor);
  CHECK_FALSE(w.given.find(*first, "m"));
  CHECK_FALSE(w.given.release(*first, "m", 2));
  CHECK_FALSE(w.given.release(*first, "n", 1));
  CHECK(w.given.holds(*first));
  // A node that drops more than it has drops what it has.
  const auto gone = w.given.release(*first, "n", 5);
  REQUIRE(gone);
  CHECK(gone->what.actor == actor);
  CHECK(w.given.size() == 0);
  CHECK_FALSE(w.given.release(*first, "n", 1));
  CHECK(w.give("n", actor).value() != *first);
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
  CHECK(*held != *other);
  const auto [was_there, gone] = w.given.node_lost("n");
  CHECK(was_there);
  REQUIRE(gone.size() == 1);
  CHECK(gone[0].node == "n");
  CHECK_FALSE(w.given.holds(*held));
  CHECK(w.given.holds(*other));
  CHECK(w.give("n", actor).error().code == errc::unavailable);
}

TEST_CASE("when an actor ends, all nodes that hold it are to be told, and nobody else's actor goes") {
  world w;
  w.given.node_up("m");
  w.given.node_up("n");
  const auto actor = w.spawn();
  const auto to_m = w.give("m", actor);
  const auto to_n = w.give("n", actor);
  REQUIRE((to_m && to_n));
  CHECK(w.given.ended(actor->id() + 1).empty());
  const auto gone = w.given.ended(actor->id());
  REQUIRE(gone.size() == 2);
  CHECK(gone[0].node == "m");
  CHECK(gone[0].id == *to_m);
  CHECK(gone[1].node == "n");
  CHECK(gone[1].id == *to_n);
  CHECK(w.given.size() == 0);
}

TEST_CASE("actors that are given are bounded, go when they end, and all go at the end") {
  world w;
  w.given.node_up("n");
  const auto first = w.spawn();
  const auto one = w.give("n", first);
  const auto two = w.give("n", w.spawn());
  REQUIRE((one && two));
  const auto third = w.spawn();
  CHECK(w.give("n", third).error().code == errc::resource_exhausted);
  const auto gone = w.given.ended(first->id());
  REQUIRE(gone.size() == 1);
  CHECK(gone[0].node == "n");
  CHECK(gone[0].id == *one);
  CHECK(w.given.ended(first->id()).empty());
  CHECK(w.give("n", third));
  CHECK(w.given.close().size() == 2);
  CHECK(w.given.size() == 0);
  CHECK(w.give("n", third).error().code == errc::draining);
}
