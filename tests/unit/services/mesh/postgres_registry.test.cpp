// The registry in a real database: nodes are objects of this process, the server's loss is a real one.

#include "services/mesh/postgres_registry.hpp"
#include "tests/support/eventually.hpp"

#include "services/link/keys.hpp"
#include "tests/support/cut_proxy.hpp"
#include "tests/support/postgres_server.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

using namespace godwit;
using namespace godwit::test;
using namespace std::chrono_literals;

namespace {

bool eventually(const std::function<bool()>& what) {
  return test::eventually(30s, what);
}

std::string fresh_schema() {
  static int count = 0;
  return "mesh_" + std::to_string(++count);
}

postgres_server& server() {
  return postgres_server::common();
}

/// A node as the registry sees it: its end of the registry, and what it was told of others.
class member {
 public:
  member(const std::string& name, const std::string& schema, const std::string& url = server().url()) {
    options_.url = url;
    options_.schema = schema;
    options_.self = node_name(name);
    // A fifth of the usual times.
    options_.beat = 200ms;
    options_.limit = 1s;
    options_.refresh = 2s;
    options_.statement = 1s;
    options_.last_retry = 200ms;
    options_.report = [this](const std::string& text) {
      const std::lock_guard lock(mutex_);
      reports_.push_back(text);
      trouble_then_.push_back(registry_->trouble());
    };
    record_.name = options_.self;
    record_.incarnation = 1'000;
    record_.endpoints = {"tcp://10.0.0.7:1", "tcp://10.0.0.7:2", "tcp://10.0.0.7:3"};
    record_.key = link::make_keys(record_.name)->open;
    record_.roles = {"session"};
    record_.models = {{"m", "f"}};
    record_.capacity = 8;
    auto made = postgres_registry::open(options_);
    if (!made)
      FAIL(made.error().message);
    registry_ = std::move(*made);
  }

  result<void> join() {
    auto done = registry_->announce(record_);
    if (done)
      registry_->watch([this](const registry_change& change) {
        const std::lock_guard lock(mutex_);
        changes_ += (change.there ? "+" : "-") + change.node.name.value + " ";
        if (change.there)
          there_.insert_or_assign(change.node.name.value, change.node);
        else
          there_.erase(change.node.name.value);
      });
    return done;
  }
  result<void> announce() { return registry_->announce(record_); }
  std::uint64_t incarnation() const { return registry_->incarnation(); }
  void leave() { registry_->stop(); }
  std::string trouble() const { return registry_->trouble(); }
  /// What it was with each report.
  std::vector<std::string> trouble_then() {
    const std::lock_guard lock(mutex_);
    return trouble_then_;
  }

  node_record& record() { return record_; }
  bool sees(std::size_t count) {
    const std::lock_guard lock(mutex_);
    return there_.size() == count;
  }
  node_record seen(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto found = there_.find(name);
    return found == there_.end() ? node_record{} : found->second;
  }
  std::string changes() {
    const std::lock_guard lock(mutex_);
    return changes_;
  }
  std::vector<std::string> reports() {
    const std::lock_guard lock(mutex_);
    return reports_;
  }
  std::size_t reported(const std::string& words) {
    const auto all = reports();
    return static_cast<std::size_t>(std::count_if(
      all.begin(), all.end(), [&](const auto& one) { return one.find(words) != std::string::npos; }));
  }

 private:
  postgres_registry_options options_;
  std::mutex mutex_;
  std::map<std::string, node_record> there_;
  std::string changes_;
  std::vector<std::string> reports_;
  std::vector<std::string> trouble_then_;
  node_record record_;
  std::shared_ptr<registry> registry_;
};

} // namespace

TEST_CASE("nodes find each other by a table, and those that leave are off it at once") {
  const auto schema = fresh_schema();
  member alpha("alpha", schema);
  REQUIRE(alpha.join());
  CHECK(alpha.sees(0));
  member beta("beta", schema);
  REQUIRE(beta.join());
  CHECK(beta.seen("alpha") == alpha.record());
  CHECK(eventually([&] { return alpha.sees(1); }));
  CHECK(alpha.seen("beta") == beta.record());

  beta.record().roles = {"session", "gateway"};
  REQUIRE(beta.announce());
  CHECK(eventually([&] { return alpha.seen("beta").roles.size() == 2; }));
  beta.leave();
  CHECK(eventually([&] { return alpha.sees(0); }));
  CHECK(server().ask("SELECT count(*) FROM " + schema + ".nodes") == "1");
  CHECK(alpha.reports().empty());
}

TEST_CASE("a node that beats no more is off the list, and comes back as another incarnation") {
  const auto schema = fresh_schema();
  cut_proxy way(server().port());
  member alpha("alpha", schema);
  member beta("beta", schema, "postgresql://godwit@127.0.0.1:" + std::to_string(way.port()) + "/postgres");
  REQUIRE(alpha.join());
  REQUIRE(beta.join());
  REQUIRE(eventually([&] { return alpha.sees(1); }));
  const auto before = alpha.seen("beta").incarnation;
  // As for one whose process is stopped: it says nothing and hears nothing.
  way.swallow(true);
  CHECK(eventually([&] { return alpha.sees(0); }));
  // The last known list stays with it.
  CHECK(beta.sees(1));
  way.swallow(false);
  CHECK(eventually([&] { return alpha.sees(1); }));
  CHECK(alpha.seen("beta").incarnation > before);
  CHECK(alpha.changes() == "+beta -beta +beta ");
  CHECK(beta.changes() == "+alpha ");
}

TEST_CASE("a name is refused while its holder beats, and free when it does not") {
  const auto schema = fresh_schema();
  auto first = std::make_unique<member>("alpha", schema);
  REQUIRE(first->join());
  member second("alpha", schema);
  const auto refused = second.join();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::conflict);
  CHECK(refused.error().message.find("alpha") != std::string::npos);
  const auto incarnation = "SELECT incarnation FROM " + schema + ".nodes";
  CHECK(server().ask(incarnation) == "1000");

  // Killed: the record stays, and its beat grows old.
  first->leave();
  server().ask("INSERT INTO " + schema
               + ".nodes VALUES ('alpha', 'dead', 5000, clock_timestamp(), 'tcp://10.0.0.7:1', "
                 "'tcp://10.0.0.7:2', 'tcp://10.0.0.7:3', '', '{}', '{}', '{}', 0)");
  member third("alpha", schema);
  CHECK(third.join());
  // Higher than that of any holder before.
  CHECK(server().ask(incarnation) == "5001");
  CHECK(third.incarnation() == 5001);
  // It rises by its own word too, and does not fall by it.
  third.record().incarnation = 6000;
  REQUIRE(third.announce());
  CHECK(eventually([&] { return server().ask(incarnation) == "6000" && third.incarnation() == 6000; }));
  third.record().incarnation = 1000;
  third.record().roles = {"gateway"};
  REQUIRE(third.announce());
  CHECK(eventually([&] { return server().ask("SELECT roles FROM " + schema + ".nodes") == "{gateway}"; }));
  CHECK(server().ask(incarnation) == "6000");
}

TEST_CASE("a process that lost its name while it was stopped is told, and takes it back when it is free") {
  const auto schema = fresh_schema();
  member alpha("alpha", schema);
  REQUIRE(alpha.join());
  const auto table = schema + ".nodes";
  server().ask("UPDATE " + table + " SET holder = 'other', beat = clock_timestamp() + interval '2 s'");
  CHECK(eventually([&] { return alpha.reported("took the name alpha") == 1; }));
  CHECK(eventually([&] { return server().ask("SELECT holder = 'other' FROM " + table) == "f"; }));
  CHECK(eventually([&] { return alpha.trouble().empty(); }));
  CHECK(alpha.reports().size() == 1);
  CHECK(alpha.trouble_then() == alpha.reports());
}

TEST_CASE("without the database the last known list stays, which is told once, and it goes on afterwards") {
  postgres_server own(postgres_server::unsynced());
  member alpha("alpha", "godwit", own.url());
  member beta("beta", "godwit", own.url());
  REQUIRE(alpha.join());
  REQUIRE(beta.join());
  REQUIRE(eventually([&] { return alpha.sees(1); }));
  // It comes and goes.
  for (std::size_t round = 1; round <= 2; ++round) {
    own.kill();
    CHECK(eventually([&] { return alpha.reported("is away") == round; }));
    CHECK(alpha.trouble().find("database is away") != std::string::npos);
    std::this_thread::sleep_for(1'500ms); // longer than a beat may be old
    own.start();
    CHECK(
      eventually([&] { return alpha.reported("is back") == round && beta.reported("is back") == round; }));
    CHECK(alpha.trouble().empty());
  }
  member gamma("gamma", "godwit", own.url());
  REQUIRE(gamma.join());
  CHECK(eventually([&] { return alpha.sees(2) && beta.sees(2) && gamma.sees(2); }));
  CHECK(alpha.changes() == "+beta +gamma ");
  CHECK(alpha.reports().size() == 4);
}

TEST_CASE("a database that hangs is given up by the statement's deadline, and found again") {
  postgres_server own(postgres_server::unsynced());
  member alpha("alpha", "godwit", own.url());
  REQUIRE(alpha.join());
  own.pause();
  CHECK(eventually([&] { return alpha.reported("is away") == 1; }));
  own.resume();
  CHECK(eventually([&] { return alpha.reported("is back") == 1; }));
  own.pause();
  const auto began = std::chrono::steady_clock::now();
  alpha.leave();
  CHECK(std::chrono::steady_clock::now() - began < 10s);
  own.resume();
}

TEST_CASE("a record that does not check is told once and not listed") {
  const auto schema = fresh_schema();
  member alpha("alpha", schema);
  REQUIRE(alpha.join());
  server().ask("INSERT INTO " + schema
               + ".nodes VALUES ('bad', 'x', 1, clock_timestamp() + interval '1 hour', 'tcp://10.0.0.7:1', "
                 "'file:///etc/passwd', 'tcp://10.0.0.7:3', '', '{}', '{}', '{}', 0)");
  CHECK(eventually([&] { return alpha.reported("the node bad") == 1; }));
  std::this_thread::sleep_for(2'500ms); // for another reading
  CHECK(alpha.reported("the node bad") == 1);
  CHECK(alpha.sees(0));
}

TEST_CASE("an address that is none and newer tables are refused, the address without its password") {
  const auto made =
    postgres_registry::open({.url = "postgresql://a@b/c?wrong=pass-word-1", .self = node_name("a")});
  REQUIRE_FALSE(made);
  CHECK(made.error().message.find("pass-word-1") == std::string::npos);
  CHECK_FALSE(postgres_registry::open({.url = server().url(), .schema = "a;b", .self = node_name("a")}));

  const auto schema = fresh_schema();
  member alpha("alpha", schema);
  REQUIRE(alpha.join());
  alpha.leave();
  server().ask("UPDATE " + schema + ".registry_version SET version = 2");
  member late("beta", schema);
  const auto refused = late.join();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::unsupported);
  CHECK(refused.error().message.find("version 2") != std::string::npos);
}
