// A disk that is full, fails, hangs or loses power.

#include "tests/unit/services/journal/engines.hpp"
#include "tests/unit/services/journal/faulty_disk.hpp"

#include <random>
#include <thread>

using namespace godwit;
using namespace godwit::test;
using namespace std::chrono_literals;
using rocksdb::IOStatus;

namespace {

const session_id one = session(1);
const session_id two = session(2);

/// A journal on a faulty disk.
class faulty_journal {
 public:
  faulty_journal() { start(); }

  rocks_journal& log() { return *log_; }
  faulty_disk& disk() { return *environment_.disk; }
  std::chrono::milliseconds deadline{10'000};

  void stop() { log_.reset(); }
  void start() {
    rocks_journal_options options;
    options.folder = folder_.path() / "journal";
    options.env = environment_.env.get();
    options.queue.deadline = deadline;
    options.first_retry = 1ms;
    options.last_retry = 4ms;
    options.write_buffer_bytes = std::size_t{64} << 10;
    auto made = rocks_journal::create(std::move(options));
    if (!made)
      FAIL(made.error().message);
    log_ = std::move(*made);
  }

  /// The power goes, and comes back. @param tail how much of what was not synced survives
  void cut_power(double tail) {
    disk().die();
    stop();
    disk().lose_unsynced(tail);
    start();
  }

 private:
  temporary_folder folder_;
  faulty_environment environment_;
  std::unique_ptr<rocks_journal> log_;
};

std::vector<std::string> all(journal& log, const session_id& of = one) {
  const auto records = log.read(of, 1, 1'000'000);
  REQUIRE(records);
  return texts(*records);
}

/// Appends until the journal takes it again.
result<sequence_number> append_when_back(journal& log, const append_request& request) {
  for (int attempt = 0; attempt < 2000; ++attempt) {
    auto answer = append_now(log, request);
    if (answer || (answer.error().code != errc::io && answer.error().code != errc::resource_exhausted))
      return answer;
    std::this_thread::sleep_for(1ms);
  }
  FAIL("the journal does not come back");
  return 0;
}

} // namespace

TEST_CASE("a full disk refuses appends, keeps reading, and is written again once there is space") {
  faulty_journal disk;
  auto& log = disk.log();
  REQUIRE(log.open(one, tenant, node_a, {record("a")}, false));
  REQUIRE(log.open(two, tenant, node_a, {record("z")}, false));
  // The log may take a part of the entry before it is full.
  const auto partly = GENERATE(0, 1, 7, 40);
  disk.disk().fail_appends(IOStatus::NoSpace("full"), static_cast<std::size_t>(partly));
  CHECK(code(append_now(log, more(one, 1, {record("lost")}))) == errc::resource_exhausted);
  CHECK(log.counters().failed);
  CHECK_FALSE(log.trouble().empty());
  CHECK(code(append_now(log, more(two, 1, {record("lost")}))) == errc::resource_exhausted);
  CHECK(all(log, two) == std::vector<std::string>{"z"});
  CHECK(log.list({}, 10)->size() == 2);
  // Whether the failed record is there is not known before the disk is back.
  CHECK(log.head(one).error().code == errc::io);
  std::this_thread::sleep_for(20ms);
  CHECK(code(append_now(log, more(two, 1, {record("lost")}))) == errc::resource_exhausted);

  disk.disk().heal();
  REQUIRE(append_when_back(log, more(two, 1, {record("y")})) == 2);
  REQUIRE(append_now(log, more(one, log.head(one)->sequence, {record("b")})));
  CHECK(all(log) == std::vector<std::string>{"a", "b"});
  CHECK(log.counters().recoveries >= 1);
  CHECK_FALSE(log.counters().failed);
  CHECK(log.trouble().empty());
  disk.cut_power(1);
  CHECK(all(disk.log()) == std::vector<std::string>{"a", "b"});
  CHECK(all(disk.log(), two) == std::vector<std::string>{"z", "y"});
}

TEST_CASE("after a failed sync the journal finds out what is stored, and goes on") {
  faulty_journal disk;
  auto& log = disk.log();
  REQUIRE(log.open(one, tenant, node_a, {record("a")}, false));
  const bool full = GENERATE(false, true);
  disk.disk().fail_syncs(full ? IOStatus::NoSpace("full") : IOStatus::IOError("broken"));
  CHECK(code(append_now(log, more(one, 1, {record("b")}))) == (full ? errc::resource_exhausted : errc::io));
  CHECK(log.head(one).error().code == errc::io);
  CHECK(log.read(one, 1, 1).error().code == errc::io);

  disk.disk().heal();
  CHECK(code(append_when_back(log, more(one, 0, {record("probe")}))) == errc::stale_sequence);
  // Now the end is known, with or without the record, and it stays so.
  const auto end = log.head(one);
  REQUIRE(end);
  const auto before = all(log);
  CHECK((before == std::vector<std::string>{"a"} || before == std::vector<std::string>{"a", "b"}));
  REQUIRE(append_now(log, more(one, end->sequence, {record("c")})) == end->sequence + 1);
  auto after = before;
  after.emplace_back("c");
  CHECK(all(log) == after);
  disk.cut_power(1);
  CHECK(all(disk.log()) == after);
}

TEST_CASE("a disk that takes no new files does not end the process when a log is full") {
  faulty_journal disk;
  auto& log = disk.log();
  REQUIRE(log.open(one, tenant, node_a, {record("1")}, false));
  disk.disk().refuse_files(IOStatus::NoSpace("full"));
  sequence_number sequence = 1;
  const auto next = [&] { return more(one, sequence, {record(std::to_string(sequence + 1))}); };
  auto answer = append_now(log, next());
  for (int i = 0; answer && i < 100'000; ++i) {
    sequence = *answer;
    answer = append_now(log, next());
  }
  CHECK(code(answer) == errc::resource_exhausted);

  disk.disk().heal();
  // Who only asks whether it works again gets it back to work too.
  for (int attempt = 0; attempt < 2000 && !log.trouble().empty(); ++attempt)
    std::this_thread::sleep_for(1ms);
  CHECK(log.trouble().empty());
  sequence = log.head(one)->sequence;
  REQUIRE(append_now(log, next()) == sequence + 1);
  const auto found = all(log);
  REQUIRE(found.size() == sequence + 1);
  for (std::size_t i = 0; i < found.size(); ++i)
    REQUIRE(found[i] == std::to_string(i + 1));
}

TEST_CASE("nothing is acknowledged before the disk has it") {
  faulty_journal disk;
  REQUIRE(disk.log().open(one, tenant, node_a, {record("a")}, false));
  disk.disk().hang();
  std::promise<result<sequence_number>> promise;
  auto answer = promise.get_future();
  disk.log().append(
    more(one, 1, {record("b")}), [&](result<sequence_number> got) { promise.set_value(std::move(got)); });
  CHECK(answer.wait_for(300ms) == std::future_status::timeout);
  CHECK(disk.log().head(one)->sequence == 1);
  disk.disk().heal();
  CHECK(answer.get() == 2);
  CHECK(disk.log().head(one)->sequence == 2);
}

TEST_CASE("a disk that hangs makes appends end by their deadline, and the truth is read later") {
  faulty_journal disk;
  REQUIRE(disk.log().open(one, tenant, node_a, {record("a")}, false));
  REQUIRE(disk.log().open(two, tenant, node_a, {record("a")}, false));
  disk.stop();
  disk.deadline = 100ms;
  disk.start();
  disk.disk().hang();
  CHECK(code(append_now(disk.log(), more(one, 1, {record("b")}))) == errc::deadline);
  CHECK(code(append_now(disk.log(), more(two, 1, {record("never")}))) == errc::deadline);
  CHECK(disk.log().claim(two, 1, node_b, record("never")).error().code == errc::deadline);
  CHECK(disk.log().counters().deadlines == 3);
  disk.disk().heal();
  // The first was under way and went in; the others waited behind it and did not.
  disk.stop();
  disk.start();
  CHECK(all(disk.log()) == std::vector<std::string>{"a", "b"});
  CHECK(all(disk.log(), two) == std::vector<std::string>{"a"});
}

TEST_CASE("a loss of power loses nothing that was acknowledged") {
  std::mt19937 random(7);
  faulty_journal disk;
  std::size_t acknowledged = 0;
  for (int round = 0; round < 8; ++round) {
    std::atomic<bool> stop{false};
    std::atomic<std::size_t> reached{acknowledged};
    if (acknowledged == 0) {
      REQUIRE(disk.log().open(one, tenant, node_a, {record("1")}, false));
      acknowledged = reached = 1;
    }
    std::thread writer([&] {
      while (!stop) {
        const auto next = reached + 1;
        if (!append_now(
              disk.log(), more(one, reached, {record(std::to_string(next) + std::string(700, '.'))})))
          break;
        reached = next;
      }
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 40));
    // While the writer goes on: some append is under way.
    disk.disk().die();
    stop = true;
    writer.join();
    acknowledged = reached;
    disk.cut_power(static_cast<double>(random() % 101) / 100);

    const auto found = all(disk.log());
    // One more may have gone in without its answer.
    REQUIRE((found.size() == acknowledged || found.size() == acknowledged + 1));
    for (std::size_t i = 1; i < found.size(); ++i)
      REQUIRE(found[i] == std::to_string(i + 1) + std::string(700, '.'));
    acknowledged = found.size();
  }
  CHECK(acknowledged > 8);
}

TEST_CASE("entries that failed do not come back after later ones") {
  // Torn entries stay in logs that were given up; replaying one after a later entry would rewrite history.
  std::mt19937 random(3);
  faulty_journal disk;
  std::vector<std::string> expected{"0"};
  REQUIRE(disk.log().open(one, tenant, node_a, {record("0")}, false));
  for (int round = 1; round <= 20; ++round) {
    const auto failure = round % 2 == 0 ? IOStatus::NoSpace("full") : IOStatus::IOError("broken");
    if (random() % 2 == 0)
      disk.disk().fail_appends(failure, random() % 120);
    else
      disk.disk().fail_syncs(failure);
    const auto lost = append_now(disk.log(), more(one, expected.size(), {record("lost")}));
    disk.disk().heal();
    if (!lost) {
      // A refusal that needs the end of the session, which is known only once the disk is back.
      CHECK(code(append_when_back(disk.log(), more(one, 0, {record("probe")}))) == errc::stale_sequence);
      const auto end = disk.log().head(one);
      REQUIRE(end);
      if (end->sequence == expected.size() + 1)
        expected.emplace_back("lost");
    } else {
      expected.emplace_back("lost");
    }
    const auto next = std::to_string(round);
    REQUIRE(append_now(disk.log(), more(one, expected.size(), {record(next)})) == expected.size() + 1);
    expected.push_back(next);
    if (round % 7 == 0)
      disk.cut_power(static_cast<double>(random() % 101) / 100);
    REQUIRE(all(disk.log()) == expected);
  }
}
