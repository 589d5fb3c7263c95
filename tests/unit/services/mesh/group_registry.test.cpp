#include "services/mesh/group_registry.hpp"
#include "tests/support/eventually.hpp"

#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <map>
#include <mutex>
#include <thread>

using namespace godwit;
using namespace std::chrono_literals;

namespace {

bool eventually(const std::function<bool()>& what) {
  return test::eventually(20s, what);
}

struct fixture {
  temporary_folder folder;
  std::map<std::string, std::string> variables{{"RBG_ROLE_NAME", "worker"}, {"RBG_ROLE_INDEX", "0"}};
  std::mutex mutex;
  std::map<std::string, node_record> there;
  std::vector<std::string> reports;

  group_registry_options options() {
    group_registry_options out;
    out.file = folder.path() / "config.yaml";
    out.keys = folder.path();
    out.poll = 5ms;
    out.environment = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    };
    out.report = [this](const error& why) {
      const std::lock_guard lock(mutex);
      reports.push_back(why.message);
    };
    return out;
  }

  /// A file of `workers` workers, and of something that is no node.
  static std::string text(int workers, const std::string& ports = "        mesh: 7401\n") {
    std::string out =
      "group:\n  name: g\nroles:\n  other:\n    instances:\n    - address: g-other-0.s-g-other\n"
      "      ports:\n        http: 80\n  worker:\n    instances:\n";
    for (int i = 0; i < workers; ++i)
      out += "    - address: g-worker-" + std::to_string(i) + ".s-g-worker\n      ports:\n" + ports;
    return out;
  }

  /// As a volume does it: the whole file at once.
  void write(const std::string& content) const {
    std::ofstream(folder.path() / "new") << content;
    std::filesystem::rename(folder.path() / "new", folder.path() / "config.yaml");
  }

  link::node_keys keys(const std::string& name) const {
    auto made = *link::make_keys(node_name(name));
    const auto aside = folder.path() / "aside";
    REQUIRE(link::save_keys(made, aside));
    std::filesystem::rename(link::public_file(aside, made.node), link::public_file(folder.path(), made.node));
    return made;
  }

  void watch(registry& of) {
    of.watch([this](const registry_change& change) {
      const std::lock_guard lock(mutex);
      if (change.there)
        there.insert_or_assign(change.node.name.value, change.node);
      else
        there.erase(change.node.name.value);
    });
  }

  std::size_t count() {
    const std::lock_guard lock(mutex);
    return there.size();
  }

  std::string refusal() {
    const auto made = group_registry::open(options());
    return made ? "none" : made.error().message;
  }
};

} // namespace

TEST_CASE_METHOD(fixture, "the other nodes of a group are found, and those that come and go with its file") {
  const auto own = keys("g-worker-0");
  const auto first = keys("g-worker-1");
  keys("g-worker-2");
  write(text(2));
  CHECK(group_registry::own_name(options()) == node_name("g-worker-0"));
  const auto made = group_registry::open(options());
  REQUIRE(made);
  CHECK(
    (*made)->listen() == node_endpoints{"tcp://0.0.0.0:7401", "tcp://0.0.0.0:7402", "tcp://0.0.0.0:7403"});
  node_record self;
  self.name = node_name("g-worker-0");
  self.key = own.open;
  CHECK((*made)->announce(self));
  watch(**made);
  REQUIRE(count() == 1);
  CHECK(there.at("g-worker-1").key == first.open);
  CHECK(there.at("g-worker-1").roles == std::vector<std::string>{"worker"});
  CHECK(there.at("g-worker-1").endpoints
        == node_endpoints{"tcp://g-worker-1.s-g-worker:7401", "tcp://g-worker-1.s-g-worker:7402",
          "tcp://g-worker-1.s-g-worker:7403"});
  write(text(3));
  CHECK(eventually([&] { return count() == 2; }));
  write(text(1));
  CHECK(eventually([&] { return count() == 0; }));
  (*made)->stop();
  write(text(3));
  std::this_thread::sleep_for(30ms);
  CHECK(count() == 0);
  CHECK(reports.empty());
}

TEST_CASE_METHOD(fixture, "a file that breaks, and a node without a key, are told once and change nothing") {
  keys("g-worker-0");
  keys("g-worker-1");
  write(text(2));
  const auto made = group_registry::open(options());
  REQUIRE(made);
  watch(**made);
  REQUIRE(count() == 1);
  CHECK((*made)->trouble().empty());
  write("group: [\n");
  const auto told = [&](std::size_t times) {
    return [this, times] {
      const std::lock_guard lock(mutex);
      return reports.size() == times;
    };
  };
  CHECK(eventually(told(1)));
  std::this_thread::sleep_for(30ms);
  CHECK(told(1)());
  CHECK(count() == 1);
  CHECK((*made)->trouble().find(options().file.string()) != std::string::npos);
  write(text(3)); // the third has no key yet
  CHECK(eventually(told(2)));
  CHECK((*made)->trouble().empty());
  CHECK(count() == 1);
  keys("g-worker-2");
  CHECK(eventually([&] { return count() == 2; }));
  CHECK(told(2)());
  (*made)->stop();
}

TEST_CASE_METHOD(fixture, "three ports may be named each") {
  keys("g-worker-0");
  write(text(1, "        mesh_letters: 1\n        mesh_bulk: 2\n        mesh_events: 3\n"));
  const auto made = group_registry::open(options());
  REQUIRE(made);
  CHECK((*made)->listen() == node_endpoints{"tcp://0.0.0.0:1", "tcp://0.0.0.0:2", "tcp://0.0.0.0:3"});
}

TEST_CASE_METHOD(fixture, "a node that is none of the group is told why") {
  CHECK_THAT(refusal(), Catch::Contains("config.yaml"));
  write(text(1));
  variables["RBG_ROLE_INDEX"] = "1";
  CHECK_THAT(refusal(), Catch::Contains("no instance 1 of the role worker"));
  variables["RBG_ROLE_INDEX"] = "0x";
  CHECK_THAT(refusal(), Catch::Contains("not a number"));
  variables["RBG_ROLE_INDEX"] = "0";
  variables["RBG_ROLE_NAME"] = "other";
  CHECK_THAT(refusal(), Catch::Contains("port named mesh"));
  variables["RBG_ROLE_NAME"] = "nobody";
  CHECK_THAT(refusal(), Catch::Contains("nobody"));
  variables.erase("RBG_ROLE_NAME");
  CHECK_THAT(refusal(), Catch::Contains("RBG_ROLE_NAME"));
}

TEST_CASE_METHOD(fixture, "a node with another name or key than the group knows does not join") {
  const auto own = keys("g-worker-0");
  write(text(1));
  const auto made = group_registry::open(options());
  REQUIRE(made);
  node_record self;
  self.name = node_name("alpha");
  self.key = own.open;
  CHECK((*made)->announce(self).error().code == errc::invalid_argument);
  self.name = node_name("g-worker-0");
  self.key = link::make_keys(self.name)->open;
  CHECK((*made)->announce(self).error().code == errc::conflict);
}

TEST_CASE_METHOD(fixture, "pods of a leader-worker set are nodes without a file") {
  variables = {
    {"LWS_LEADER_ADDRESS", "set-0.set.default"}, {"LWS_GROUP_SIZE", "3"}, {"LWS_WORKER_INDEX", "1"}};
  CHECK_THAT(refusal(), Catch::Contains("mesh_listen"));
  auto how = options();
  how.port = 7401;
  keys("set-0");
  const auto own = keys("set-0-1");
  const auto made = group_registry::open(how);
  REQUIRE(made);
  CHECK(
    (*made)->listen() == node_endpoints{"tcp://0.0.0.0:7401", "tcp://0.0.0.0:7402", "tcp://0.0.0.0:7403"});
  node_record self;
  self.name = node_name("set-0-1");
  self.key = own.open;
  CHECK((*made)->announce(self));
  watch(**made);
  // The third has no key yet.
  CHECK(count() == 1);
  CHECK(there.at("set-0").endpoints.letters == "tcp://set-0.set.default:7401");
  CHECK(there.at("set-0").roles == std::vector<std::string>{"leader"});
  keys("set-0-2");
  CHECK(eventually([&] { return count() == 2; }));
  CHECK(there.at("set-0-2").endpoints.events == "tcp://set-0-2.set.default:7403");
  (*made)->stop();
  variables.erase("LWS_GROUP_SIZE");
  CHECK_THAT(refusal(), Catch::Contains("LWS_GROUP_SIZE"));
}

TEST_CASE_METHOD(fixture, "a worker of a leader-worker set is none of the nodes that a group's file lists") {
  keys("g-worker-0");
  write(text(1));
  variables.insert(
    {{"LWS_LEADER_ADDRESS", "g-worker-0.s-g-worker"}, {"LWS_GROUP_SIZE", "2"}, {"LWS_WORKER_INDEX", "0"}});
  CHECK(group_registry::open(options()));
  variables["LWS_WORKER_INDEX"] = "1";
  CHECK_THAT(refusal(), Catch::Contains("LWS_WORKER_INDEX says that this pod is worker 1"));
  variables["LWS_WORKER_INDEX"] = "0";
  variables["RBG_LWP_WORKER_INDEX"] = "1";
  CHECK_THAT(refusal(), Catch::Contains("RBG_LWP_WORKER_INDEX"));
}
