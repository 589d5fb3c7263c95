// Servers that die, pause and take over.

#include "services/journal/postgres/postgres_journal.hpp"

#include "tests/support/postgres_server.hpp"
#include "tests/unit/services/journal/records.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <map>
#include <set>
#include <thread>

using namespace godwit;
using namespace godwit::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

using steady = std::chrono::steady_clock;

std::unique_ptr<postgres_journal> open(const std::string& url, milliseconds deadline = milliseconds(10'000)) {
  postgres_journal_options options;
  options.url = url;
  options.queue.deadline = deadline;
  options.suspicion = milliseconds(500);
  options.allow_unsafe = true;
  auto made = postgres_journal::create(options);
  if (!made)
    FAIL(made.error().message);
  return std::move(*made);
}

/// Sessions that append as fast as they can, and know what was acknowledged.
class load {
 public:
  load(postgres_journal& log, std::size_t sessions) : log_(log), acknowledged_(sessions) {
    for (std::size_t i = 0; i < sessions; ++i)
      threads_.emplace_back([this, i] { run(i); });
  }
  ~load() { stop(); }

  void stop() {
    ending_ = true;
    for (auto& one : threads_)
      if (one.joinable())
        one.join();
  }

  std::size_t count() const { return count_; }
  std::size_t failures() const { return failures_; }

  /// Until so many more were acknowledged. @returns false after half a minute
  bool wait_for(std::size_t more) {
    const auto end = steady::now() + seconds(30);
    for (const auto goal = count_ + more; count_ < goal; std::this_thread::sleep_for(milliseconds(2)))
      if (steady::now() > end)
        return false;
    return true;
  }

  /// Every acknowledged record is in the journal at its place, and nothing is there twice.
  void check(journal& in) {
    for (std::size_t i = 0; i < acknowledged_.size(); ++i) {
      result<std::vector<placed_record>> records = in.read(session(i), 1, 1'000'000);
      const auto end = steady::now() + seconds(20);
      for (; !records && steady::now() < end; records = in.read(session(i), 1, 1'000'000))
        std::this_thread::sleep_for(milliseconds(50));
      REQUIRE(records);
      const auto all = texts(*records);
      CHECK(std::set<std::string>(all.begin(), all.end()).size() == all.size());
      for (const auto& [place, text] : acknowledged_[i]) {
        REQUIRE(place <= all.size());
        CHECK(all[place - 1] == text);
      }
    }
  }

 private:
  void run(std::size_t i) {
    const auto of = session(i);
    sequence_number at = 1;
    std::size_t number = 0;
    while (!log_.open(of, tenant, node_a, {record("start")}, false) && !ending_) {
    }
    while (!ending_) {
      const auto text = std::to_string(i) + "/" + std::to_string(++number);
      const auto answer = append_now(log_, more(of, at, {record(text)}));
      if (answer) {
        acknowledged_[i][*answer] = text;
        at = *answer;
        ++count_;
        continue;
      }
      ++failures_;
      // As a session does: look where the journal ends.
      for (auto head = log_.head(of); !ending_; head = log_.head(of)) {
        if (head) {
          at = head->sequence;
          break;
        }
        std::this_thread::sleep_for(milliseconds(10));
      }
    }
  }

  postgres_journal& log_;
  std::vector<std::map<sequence_number, std::string>> acknowledged_;
  std::atomic<std::size_t> count_{0};
  std::atomic<std::size_t> failures_{0};
  std::atomic<bool> ending_{false};
  std::vector<std::thread> threads_;
};

/// One primary, two standbys, commits that wait for any one of them.
struct three_servers {
  postgres_server primary{postgres_server::unsynced()};
  postgres_server a{primary, "a"};
  postgres_server b{primary, "b"};

  three_servers() {
    primary.set("synchronous_standby_names", "ANY 1 (a, b)");
    const auto end = steady::now() + seconds(20);
    while (primary.ask("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'") != "2"
           && steady::now() < end)
      std::this_thread::sleep_for(milliseconds(20));
    REQUIRE(primary.ask("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'") == "2");
  }

  std::string url() const {
    return "postgresql://godwit@" + primary.host_and_port() + "," + a.host_and_port() + ","
           + b.host_and_port() + "/postgres";
  }

  /// The standby that has received more, as whoever promotes one has to find out.
  postgres_server& most_advanced() {
    const auto received = [](const postgres_server& of) {
      return std::stoll(of.ask("SELECT coalesce(pg_last_wal_receive_lsn(), '0/0') - '0/0'::pg_lsn"));
    };
    return received(a) >= received(b) ? a : b;
  }
};

} // namespace

TEST_CASE("a server that is killed under load comes back with every acknowledged record") {
  postgres_server server(postgres_server::unsynced());
  const auto log = open(server.url());
  load sessions(*log, 8);
  for (int round = 0; round < 2; ++round) {
    REQUIRE(sessions.wait_for(50));
    server.kill();
    server.start();
  }
  REQUIRE(sessions.wait_for(50));
  sessions.stop();
  sessions.check(*log);
  CHECK(log->counters().recoveries >= 2);
}

TEST_CASE("a server that pauses is waited for, and nothing is written twice") {
  postgres_server server(postgres_server::unsynced());
  const auto log = open(server.url());
  load sessions(*log, 8);
  REQUIRE(sessions.wait_for(50));
  server.pause();
  std::this_thread::sleep_for(milliseconds(2500));
  const auto during = sessions.count();
  CHECK_FALSE(log->trouble().empty());
  server.resume();
  REQUIRE(sessions.wait_for(50));
  CHECK(during <= sessions.count());
  CHECK(log->trouble().empty());
  sessions.stop();
  sessions.check(*log);
}

TEST_CASE("a standby that is promoted has every acknowledged record and takes the next ones") {
  three_servers servers;
  const auto log = open(servers.url());
  load sessions(*log, 8);
  REQUIRE(sessions.wait_for(200));
  servers.primary.kill();
  auto& next = servers.most_advanced();
  next.promote();
  REQUIRE(sessions.wait_for(200));
  sessions.stop();
  sessions.check(*log);
  // The old primary comes back and believes to be one: it is not written to any more.
  auto after = open(servers.url(), milliseconds(2'000));
  const auto head = log->head(session(0));
  REQUIRE(head);
  servers.primary.start();
  servers.primary.set("synchronous_standby_names", "");
  next.kill();
  CHECK_FALSE(append_now(*after, more(session(0), head->sequence, {record("astray")})));
  CHECK_FALSE(append_now(*after, more(session(0), 1, {record("astray")})));
}

TEST_CASE("one lost standby changes nothing, without both nothing is acknowledged until one is back") {
  three_servers servers;
  const auto log = open(servers.url(), milliseconds(3'000));
  load sessions(*log, 8);
  REQUIRE(sessions.wait_for(100));
  servers.a.kill();
  REQUIRE(sessions.wait_for(100));
  CHECK(sessions.failures() == 0);

  servers.b.kill();
  // What was confirmed before the last standby died may still be on its way.
  std::this_thread::sleep_for(milliseconds(300));
  const auto then = sessions.count();
  std::this_thread::sleep_for(seconds(4));
  CHECK(sessions.count() == then);
  CHECK_FALSE(log->trouble().empty());
  // Commits that wait hold one connection each at the server, so there must not be more and more of them.
  CHECK(
    std::stoi(servers.primary.ask("SELECT count(*) FROM pg_stat_activity WHERE usename = 'godwit'")) < 15);

  servers.b.start();
  REQUIRE(sessions.wait_for(100));
  CHECK(log->trouble().empty());
  sessions.stop();
  sessions.check(*log);
}

TEST_CASE("everything lost and back: what was acknowledged is there, and writing goes on") {
  three_servers servers;
  const auto log = open(servers.url(), milliseconds(3'000));
  load sessions(*log, 4);
  REQUIRE(sessions.wait_for(100));
  servers.b.kill();
  servers.a.kill();
  servers.primary.kill();
  std::this_thread::sleep_for(milliseconds(500));
  servers.primary.start();
  std::this_thread::sleep_for(milliseconds(1'000));
  const auto then = sessions.count();
  std::this_thread::sleep_for(milliseconds(1'000));
  CHECK(sessions.count() == then);
  servers.a.start();
  REQUIRE(sessions.wait_for(100));
  sessions.stop();
  sessions.check(*log);
}
