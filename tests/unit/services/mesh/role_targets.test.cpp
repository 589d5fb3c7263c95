#include "services/mesh/role_targets.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <catch2/catch.hpp>

#include <algorithm>

using namespace godwit;

namespace {

/// Targets need handles; these actors do nothing.
struct fixture {
  caf::actor_system_config config;
  caf::actor_system system{config};
  role_targets targets{"tokenizer", node_name("alpha")};

  caf::strong_actor_ptr idle() {
    const auto made = system.spawn([](caf::event_based_actor*) -> caf::behavior { return {[](int) {}}; });
    all_.push_back(made);
    return caf::actor_cast<caf::strong_actor_ptr>(made);
  }

  ~fixture() {
    for (const auto& each : all_)
      caf::anon_send_exit(each, caf::exit_reason::user_shutdown);
  }

  void put(const std::string& node, bool draining = false) { targets.put(node_name(node), idle(), draining); }
  std::string used() const { return targets.in_use().value_or(node_name("nobody")).value; }

 private:
  std::vector<caf::actor> all_;
};

/// Where a chooser goes first when all of these are there.
std::string choice(const std::string& chooser, const std::vector<std::string>& among) {
  return *std::ranges::max_element(among, {},
    [&](const std::string& each) { return rendezvous_weight(node_name(chooser), node_name(each)); });
}

} // namespace

TEST_CASE("choosers spread over targets, and only those of a lost target move") {
  const std::vector<std::string> four{"a", "b", "c", "d"};
  const std::vector<std::string> three{"a", "b", "c"};
  std::map<std::string, int> counts;
  for (int i = 0; i < 4000; ++i) {
    const auto chooser = "node-" + std::to_string(i);
    const auto before = choice(chooser, four);
    ++counts[before];
    if (before != "d")
      CHECK(choice(chooser, three) == before);
  }
  // 1,000 each, with a standard deviation of 27.
  for (const auto& each : four) {
    CHECK(counts[each] > 850);
    CHECK(counts[each] < 1150);
  }
}

TEST_CASE("the weight of a pair is not that of another pair with the same letters") {
  CHECK(
    rendezvous_weight(node_name("ab"), node_name("c")) != rendezvous_weight(node_name("a"), node_name("bc")));
  CHECK(
    rendezvous_weight(node_name("a"), node_name("b")) != rendezvous_weight(node_name("b"), node_name("a")));
}

TEST_CASE_METHOD(fixture, "without a target the refusal names the role") {
  CHECK(targets.current() == nullptr);
  CHECK(targets.listeners().empty());
  CHECK(targets.refusal().code == errc::unavailable);
  CHECK(targets.refusal().message.find("tokenizer") != std::string::npos);
}

TEST_CASE_METHOD(fixture, "the target in use stays while it is there, whoever comes") {
  put("m");
  CHECK(used() == "m");
  for (const auto* each : {"a", "b", "c", "x", "y", "z"}) {
    put(each);
    CHECK(used() == "m");
  }
  CHECK(targets.remove(node_name("a")));
  CHECK_FALSE(targets.remove(node_name("a")));
  CHECK(used() == "m");
  targets.remove(node_name("m"));
  CHECK(used() == choice("alpha", {"b", "c", "x", "y", "z"}));
}

TEST_CASE_METHOD(fixture, "a target's new actor takes the place of the earlier one") {
  put("m");
  const auto before = targets.current();
  put("m");
  CHECK(targets.current() != before);
  CHECK(targets.nodes() == std::vector{node_name("m")});
}

TEST_CASE_METHOD(fixture, "a target that drains is left to others for requests, and still hears letters") {
  put("m");
  const auto first = targets.current();
  put("n");
  targets.put(node_name("m"), first, true);
  CHECK(used() == "n");
  CHECK(targets.listeners() == std::vector{targets.current(), first});
  // One that drains and was never in use has nothing to hear.
  put("o", true);
  CHECK(targets.listeners().size() == 2);
  targets.remove(node_name("m"));
  CHECK(targets.listeners() == std::vector{targets.current()});
  // It has come back.
  put("m");
  CHECK(used() == "n");
}

TEST_CASE_METHOD(fixture, "when all drain, the one in use stays") {
  put("m");
  put("n", true);
  put("m", true);
  CHECK(used() == "m");
  CHECK(targets.listeners().size() == 1);
  put("n");
  CHECK(used() == "n");
}

TEST_CASE_METHOD(fixture, "the watcher hears of the loss of the target in use, and of no other") {
  std::vector<std::string> lost;
  targets.watch_lost([&](const node_name& node) {
    lost.push_back(node.value);
    CHECK(used() != node.value); // the next one is there already
  });
  put("m");
  put("n");
  targets.remove(node_name("n"));
  CHECK(lost.empty());
  put("n");
  targets.remove(node_name("m"));
  CHECK(lost == std::vector<std::string>{"m"});
  targets.watch_lost({});
  targets.remove(node_name("n"));
  CHECK(lost.size() == 1);
}

TEST_CASE_METHOD(fixture, "closed targets take nobody any more and say why") {
  put("m");
  targets.close({errc::draining, "this node is stopping", {}, {}});
  CHECK(targets.current() == nullptr);
  put("n");
  CHECK(targets.current() == nullptr);
  CHECK(targets.refusal().code == errc::draining);
}
