#include "actors/directory/ownership.hpp"

#include "tests/unit/actors/directory/fake_peers.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using place = ownership::place;

namespace {

constexpr ownership::limits patience{std::chrono::milliseconds(5'000), std::chrono::milliseconds(10'000)};

journal_head head_of(const std::string& owner, epoch_t epoch = 1, const std::string& session = "ses_1") {
  journal_head head;
  head.session = session_id(session);
  head.owner = node_name(owner);
  head.epoch = epoch;
  return head;
}

struct two_nodes {
  std::shared_ptr<fake_peers> peers = std::make_shared<fake_peers>(node_name("me"));
  ownership owners{node_name("me"), peers, patience, 0};
  place of(const std::string& owner, std::int64_t now) const { return owners.of(head_of(owner), now).where; }
};

} // namespace

TEST_CASE("alone, everything is here, whatever the node was called before") {
  const ownership owners(node_name("me"), nullptr, patience, 0);
  CHECK(owners.alone());
  CHECK(owners.of(head_of("me"), 0).where == place::here);
  CHECK(owners.of(head_of("old name"), 0).where == place::here);
  CHECK(owners.alive() == std::vector<node_name>{node_name("me")});
}

TEST_CASE("a node that is up has its sessions") {
  two_nodes world;
  world.peers->up(node_name("you"), {});
  CHECK(world.of("me", 0) == place::here);
  CHECK(world.of("you", 0) == place::there);
  CHECK(world.of("", 0) == place::here);
}

TEST_CASE("soon after the start a node that was not seen is not known, and later it is gone") {
  two_nodes world;
  CHECK(world.of("you", 4'999) == place::unknown);
  CHECK(world.of("you", 5'000) == place::gone);
}

TEST_CASE("a node that is known to be lost is gone at once, and back when it is up") {
  two_nodes world;
  world.owners.lost(node_name("you"), 100);
  CHECK(world.of("you", 100) == place::gone);
  world.peers->up(node_name("you"), {});
  CHECK(world.of("you", 100) == place::there);
}

TEST_CASE("what a node that shuts down does not take up may be had by another, the rest is its") {
  two_nodes world;
  world.peers->up(node_name("you"), {});
  world.owners.given_up(session_id("ses_1"), node_name("you"), 100);
  CHECK(world.of("you", 100) == place::gone);
  CHECK(world.owners.of(head_of("you", 1, "ses_2"), 100).where == place::there);
  CHECK(world.of("you", 2'100) == place::there);
}

TEST_CASE("what a node took that is not to be seen is not taken back at once") {
  two_nodes world;
  world.owners.taken(session_id("ses_1"), node_name("you"), 20'000);
  CHECK(world.of("you", 29'999) == place::yielded);
  CHECK(world.owners.of(head_of("you", 2, "ses_2"), 20'000).where == place::gone);
  // A third has it now.
  CHECK(world.of("they", 29'999) == place::gone);
  CHECK(world.of("you", 30'000) == place::gone);
}

TEST_CASE("what a node took that was seen since, and lost, is taken back at once") {
  two_nodes world;
  world.owners.taken(session_id("ses_1"), node_name("you"), 20'000);
  world.owners.lost(node_name("you"), 21'000);
  CHECK(world.of("you", 21'000) == place::gone);
}

TEST_CASE("a session is another's when another has claimed it since") {
  two_nodes world;
  CHECK(!world.owners.is_taken(head_of("me", 3), 2));
  CHECK(world.owners.is_taken(head_of("you", 3), 2));
  // A lost node's session that this one has not claimed yet.
  CHECK(!world.owners.is_taken(head_of("you", 2), 2));
  world.peers->up(node_name("you"), {});
  CHECK(world.owners.is_taken(head_of("you", 2), 2));
}
