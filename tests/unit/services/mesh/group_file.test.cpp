#include "services/mesh/group_file.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

TEST_CASE("a file as the group's controller writes it is read") {
  // As in the controller's own test, with ports of a mesh.
  const auto file = parse_group_file(R"(group:
  name: test-cluster
  roles:
  - worker
  - leader
  size: 2
roles:
  leader:
    instances:
    - address: test-cluster-leader-0.s-test-cluster-leader
      ports:
        api: 6443
    size: 1
  spare:
    instances: []
    size: 0
  worker:
    instances:
    - address: test-cluster-worker-0.s-test-cluster-worker
      ports:
        http: 8080
        mesh: 7401
    - address: test-cluster-worker-1.s-test-cluster-worker
    size: 2
)");
  REQUIRE(file);
  CHECK(file->name == "test-cluster");
  REQUIRE(file->roles.size() == 3);
  CHECK(file->roles.at("spare").empty());
  CHECK(file->roles.at("leader").at(0).address == "test-cluster-leader-0.s-test-cluster-leader");
  const auto& workers = file->roles.at("worker");
  REQUIRE(workers.size() == 2);
  CHECK(workers[0].ports == std::map<std::string, std::uint16_t>{{"http", 8080}, {"mesh", 7401}});
  CHECK(workers[1].ports.empty());
}

TEST_CASE("a file that is none is refused with the line") {
  const std::string head = "group:\n  name: g\n";
  for (const auto& [text, expected] :
    std::initializer_list<std::pair<std::string, std::string>>{
      {"", "no name"},
      {"group: g\nroles: {}\n", "no name"},
      {"group:\n  name: []\nroles: {}\n", "no name"},
      {head, "no roles"},
      {head + "roles: []\n", "no roles"},
      {head + "roles:\n  a: 1\n", "line 4: the role a"},
      {head + "roles:\n  a:\n    instances: {}\n", "the role a"},
      {head + "roles:\n  a:\n    instances:\n    - x\n", "line 6: an instance has no address"},
      {head + "roles:\n  a:\n    instances:\n    - address: []\n", "no address"},
      {head + "roles:\n  a:\n    instances:\n    - address: x\n      ports: 7\n", "line 7: ports"},
      {head + "roles:\n  a:\n    instances:\n    - address: x\n      ports:\n        m: 0\n",
        "line 8: a port"},
      {head + "roles:\n  a:\n    instances:\n    - address: x\n      ports:\n        m: 65536\n", "a port"},
      {head + "roles:\n  a:\n    instances:\n    - address: x\n      ports:\n        m: 80x\n", "a port"},
      {"a: *b\n", "line 1"},
    }) {
    INFO(text);
    const auto file = parse_group_file(text);
    REQUIRE_FALSE(file);
    CHECK(file.error().code == errc::corrupt);
    CHECK_THAT(file.error().message, Catch::Contains(expected));
  }
}
