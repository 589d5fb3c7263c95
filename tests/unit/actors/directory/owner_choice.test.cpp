#include "actors/directory/owner_choice.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <map>
#include <random>
#include <string>

using namespace godwit;

namespace {

std::vector<node_name> names(std::initializer_list<const char*> of) {
  std::vector<node_name> out;
  for (const auto* name : of)
    out.emplace_back(name);
  return out;
}

session_id random_id(std::mt19937_64& dice) {
  std::string id = "ses_";
  for (int i = 0; i < 32; ++i)
    id += "0123456789abcdef"[dice() % 16];
  return session_id(id);
}

} // namespace

TEST_CASE("nobody is chosen from nobody") {
  CHECK(choose_owner(session_id("ses_1"), {}) == nullptr);
}

TEST_CASE("the choice is the one that the formula gives elsewhere") {
  // Computed by a program of its own in Python.
  const auto nodes = names({"alpha", "beta", "gamma"});
  const std::pair<const char*, const char*> expected[] = {
    {"ses_00000000000000000000000000000007", "gamma"},
    {"ses_0000000123456789abcdef0123456790", "alpha"},
    {"ses_00000002468acf13579bde02468acf19", "alpha"},
    {"ses_0000000369d0369d0369cd0369d036a2", "gamma"},
    {"ses_000000048d159e26af37bc048d159e2b", "gamma"},
    {"ses_00000005b05b05b05b05ab05b05b05b4", "alpha"},
    {"ses_00000006d3a06d3a06d39a06d3a06d3d", "alpha"},
    {"ses_00000007f6e5d4c3b2a18907f6e5d4c6", "beta"},
  };
  for (const auto& [id, node] : expected)
    CHECK(choose_owner(session_id(id), nodes)->value == node);
}

TEST_CASE("the order of the names does not matter, and a node less moves only its own sessions") {
  std::mt19937_64 dice(1);
  const auto all = names({"a", "b", "c", "d"});
  const auto turned = names({"d", "b", "a", "c"});
  const auto without = names({"a", "b", "d"});
  for (int i = 0; i < 2'000; ++i) {
    const auto id = random_id(dice);
    const auto chosen = *choose_owner(id, all);
    CHECK(*choose_owner(id, turned) == chosen);
    if (chosen.value != "c")
      CHECK(*choose_owner(id, without) == chosen);
  }
}

TEST_CASE("each node is chosen as often as the others, also when names differ in one character") {
  std::mt19937_64 dice(2);
  const auto nodes = names({"node-1", "node-2", "node-3", "node-4", "node-5"});
  constexpr int sessions = 50'000;
  std::map<std::string, int> counts;
  for (int i = 0; i < sessions; ++i)
    ++counts[choose_owner(random_id(dice), nodes)->value];
  // Five standard deviations of the binomial distribution.
  const double share = 1.0 / 5;
  const double deviation = std::sqrt(sessions * share * (1 - share));
  for (const auto& node : nodes)
    CHECK(std::abs(counts[node.value] - sessions * share) < 5 * deviation);
}
