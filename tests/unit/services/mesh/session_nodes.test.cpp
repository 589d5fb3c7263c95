#include "services/mesh/session_nodes.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <catch2/catch.hpp>

using namespace godwit;

namespace {

struct fixture {
  caf::actor_system_config config;
  caf::actor_system system{config};
  caf::actor idle = system.spawn([](caf::event_based_actor*) -> caf::behavior { return {[](int) {}}; });
  directory_actor directory = caf::actor_cast<directory_actor>(idle);

  ~fixture() { caf::anon_send_exit(idle, caf::exit_reason::user_shutdown); }
};

std::vector<node_name> names(std::initializer_list<const char*> all) {
  std::vector<node_name> out;
  for (const auto* each : all)
    out.emplace_back(each);
  return out;
}

} // namespace

TEST_CASE_METHOD(
  fixture, "a node that serves sessions is one of those that are alive, in the order of names") {
  session_nodes one(node_name("beta"), true);
  CHECK(one.alive() == names({"beta"}));
  one.put(node_name("gamma"), directory);
  one.put(node_name("alpha"), directory);
  CHECK(one.alive() == names({"alpha", "beta", "gamma"}));
  CHECK(one.find(node_name("alpha")) == directory);
  CHECK_FALSE(one.find(node_name("beta")));
  CHECK_FALSE(one.find(node_name("delta")));
  session_nodes other(node_name("beta"), false);
  CHECK(other.alive().empty());
}

TEST_CASE_METHOD(fixture, "a loss is told once, and to nobody when nobody watches") {
  session_nodes all(node_name("beta"), true);
  std::vector<node_name> lost;
  all.watch_lost([&](const node_name& node) { lost.push_back(node); });
  all.put(node_name("alpha"), directory);
  all.put(node_name("alpha"), directory);
  all.remove(node_name("alpha"));
  all.remove(node_name("alpha"));
  all.remove(node_name("gamma"));
  CHECK(lost == names({"alpha"}));
  CHECK_FALSE(all.find(node_name("alpha")));
  all.put(node_name("alpha"), directory);
  all.watch_lost({});
  all.remove(node_name("alpha"));
  CHECK(lost.size() == 1);
}

TEST_CASE_METHOD(fixture, "when the mesh ends nobody is there, and nobody was lost") {
  session_nodes all(node_name("beta"), true);
  bool told = false;
  all.watch_lost([&](const node_name&) { told = true; });
  all.put(node_name("alpha"), directory);
  all.close();
  CHECK(all.alive() == names({"beta"}));
  CHECK_FALSE(told);
}
