#include "services/mesh/leader_workers.hpp"

#include <catch2/catch.hpp>

#include <map>

using namespace godwit;

namespace {

result<std::optional<leader_workers>> with(const std::map<std::string, std::string>& variables) {
  return leader_workers_of([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

} // namespace

// Names as the controller of sigs.k8s.io/lws gives them: pkg/utils/pod/pod_utils.go for the leader's address,
// and a stateful set called after the leader for the workers.

TEST_CASE("pods of a leader-worker set are called after their leader") {
  const auto made =
    with({{"LWS_LEADER_ADDRESS", "set-1.set.default"}, {"LWS_GROUP_SIZE", "3"}, {"LWS_WORKER_INDEX", "2"}});
  REQUIRE(made);
  REQUIRE(*made);
  CHECK((*made)->addresses
        == std::vector<std::string>{"set-1.set.default", "set-1-1.set.default", "set-1-2.set.default"});
  CHECK((*made)->own == 2);
}

TEST_CASE("a pod of no such set is none") {
  const auto made = with({{"LWS_GROUP_SIZE", "3"}});
  REQUIRE(made);
  CHECK_FALSE(*made);
}

TEST_CASE("a leader alone is a group of one") {
  const auto made = with({{"LWS_LEADER_ADDRESS", "a"}, {"LWS_GROUP_SIZE", "1"}, {"LWS_WORKER_INDEX", "0"}});
  REQUIRE(made);
  REQUIRE(*made);
  CHECK((*made)->addresses == std::vector<std::string>{"a"});
}

TEST_CASE("variables that are missing or make no sense are refused by name") {
  const auto refused = [](std::map<std::string, std::string> change, const std::string& name) {
    std::map<std::string, std::string> all{
      {"LWS_LEADER_ADDRESS", "a.b"}, {"LWS_GROUP_SIZE", "2"}, {"LWS_WORKER_INDEX", "0"}};
    for (const auto& [variable, value] : change)
      if (value.empty())
        all.erase(variable);
      else
        all[variable] = value;
    const auto made = with(all);
    REQUIRE_FALSE(made);
    CHECK(made.error().code == errc::invalid_argument);
    CHECK(made.error().message.find("the variable " + name) == 0);
  };
  refused({{"LWS_GROUP_SIZE", ""}}, "LWS_GROUP_SIZE");
  refused({{"LWS_GROUP_SIZE", "0"}}, "LWS_GROUP_SIZE");
  refused({{"LWS_GROUP_SIZE", "4097"}}, "LWS_GROUP_SIZE");
  refused({{"LWS_GROUP_SIZE", "2x"}}, "LWS_GROUP_SIZE");
  refused({{"LWS_WORKER_INDEX", ""}}, "LWS_WORKER_INDEX");
  refused({{"LWS_WORKER_INDEX", "2"}}, "LWS_WORKER_INDEX");
  refused({{"LWS_WORKER_INDEX", "-1"}}, "LWS_WORKER_INDEX");
  refused({{"LWS_LEADER_ADDRESS", "a b"}}, "LWS_LEADER_ADDRESS");
  refused({{"LWS_LEADER_ADDRESS", std::string(63, 'a')}}, "LWS_LEADER_ADDRESS");
}
