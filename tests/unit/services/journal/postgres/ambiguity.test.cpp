// Connections that end between sending and the answer, at chosen bytes.

#include "services/journal/postgres/postgres_journal.hpp"

#include "tests/support/cut_proxy.hpp"
#include "tests/support/postgres_server.hpp"
#include "tests/unit/services/journal/records.hpp"

#include <catch2/catch.hpp>

#include <thread>

using namespace godwit;
using namespace godwit::test;
using std::chrono::milliseconds;

namespace {

const session_id one = session(1);
using words = std::vector<std::string>;

/// A journal behind a proxy, and one beside it.
class behind_proxy {
 public:
  explicit behind_proxy(milliseconds deadline = milliseconds(10'000)) {
    static int count = 0;
    options_.schema = "cut_" + std::to_string(++count);
    options_.allow_unsafe = true;
    options_.queue.deadline = deadline;
    log = open("postgresql://godwit@127.0.0.1:" + std::to_string(proxy.port()) + "/postgres");
    beside = open(server().url());
  }

  static postgres_server& server() { return postgres_server::common(); }

  std::unique_ptr<postgres_journal> open(const std::string& url) {
    auto options = options_;
    options.url = url;
    auto made = postgres_journal::create(options);
    if (!made)
      FAIL(made.error().message);
    return std::move(*made);
  }

  words texts(const session_id& of = one) {
    const auto records = beside->read(of, 1, 100'000);
    if (!records)
      return {std::string(to_string(records.error().code))};
    return test::texts(*records);
  }

  cut_proxy proxy{server().port()};

 private:
  postgres_journal_options options_;

 public:
  std::unique_ptr<postgres_journal> log;
  std::unique_ptr<postgres_journal> beside;
};

std::string say(const result<sequence_number>& got) {
  return got ? std::to_string(*got) : std::string(to_string(got.error().code));
}

} // namespace

TEST_CASE("an append whose answer is lost went in once and is acknowledged") {
  behind_proxy with;
  REQUIRE(with.log->open(one, tenant, node_a, {record("a")}, false));
  for (sequence_number at = 1; at <= 5; ++at) {
    with.proxy.cut_answers_after(0);
    CHECK(say(append_now(*with.log, more(one, at, {record(std::to_string(at))}))) == std::to_string(at + 1));
    CHECK(with.proxy.cut());
  }
  CHECK(with.texts() == words{"a", "1", "2", "3", "4", "5"});
  CHECK(with.log->counters().failures == 5);
  CHECK(with.log->counters().recoveries == 5);
  CHECK(with.log->trouble().empty());
}

TEST_CASE("an append of which the database got nothing, or a part, is sent again") {
  behind_proxy with;
  REQUIRE(with.log->open(one, tenant, node_a, {record("a")}, false));
  words expected{"a"};
  sequence_number at = 1;
  // The message has some hundreds of bytes: names, numbers, the record.
  for (const std::size_t bytes : {0U, 1U, 7U, 100U, 200U, 300U, 400U}) {
    with.proxy.cut_requests_after(bytes);
    expected.push_back(std::to_string(bytes) + std::string(500, '.'));
    CHECK(say(append_now(*with.log, more(one, at, {record(expected.back())}))) == std::to_string(at + 1));
    CHECK(with.proxy.cut());
    ++at;
  }
  CHECK(with.texts() == expected);
}

TEST_CASE("wherever the answer is cut, the append is acknowledged and stored once") {
  behind_proxy with;
  REQUIRE(with.log->open(one, tenant, node_a, {record("a")}, false));
  words expected{"a"};
  sequence_number at = 1;
  for (std::size_t bytes = 1; bytes < 200; bytes += 23) {
    with.proxy.cut_answers_after(bytes);
    expected.push_back(std::to_string(bytes));
    CHECK(say(append_now(*with.log, more(one, at, {record(expected.back())}))) == std::to_string(at + 1));
    ++at;
  }
  CHECK(with.texts() == expected);
}

TEST_CASE("an append in whose place another node wrote meanwhile is stale, not acknowledged") {
  behind_proxy with;
  REQUIRE(with.log->open(one, tenant, node_a, {record("a")}, false));
  with.proxy.cut_requests_after(0, false);
  result<sequence_number> answer;
  std::thread writer([&] { answer = append_now(*with.log, more(one, 1, {record("ours")})); });
  while (!with.proxy.cut())
    std::this_thread::sleep_for(milliseconds(1));
  CHECK(append_now(*with.beside, more(one, 1, {record("theirs")})) == 2);
  with.proxy.open_gate();
  writer.join();
  CHECK(say(answer) == "stale_sequence");
  CHECK(with.texts() == words{"a", "theirs"});
}

TEST_CASE("an append that went in and behind which another node wrote is acknowledged") {
  behind_proxy with;
  REQUIRE(with.log->open(one, tenant, node_a, {record("a")}, false));
  with.proxy.cut_answers_after(0, false);
  result<sequence_number> answer;
  std::thread writer([&] { answer = append_now(*with.log, more(one, 1, {record("ours")})); });
  while (!with.proxy.cut())
    std::this_thread::sleep_for(milliseconds(1));
  const auto claimed = with.beside->claim(one, 1, node_b, record("claimed"));
  with.proxy.open_gate();
  writer.join();
  REQUIRE(claimed);
  CHECK(claimed->sequence == 3);
  CHECK(say(answer) == "2");
  CHECK(with.texts() == words{"a", "ours", "claimed"});
}

TEST_CASE("opening, claiming and erasing survive a lost answer as well") {
  behind_proxy with;
  with.proxy.cut_answers_after(0);
  CHECK(with.log->open(one, tenant, node_a, {record("a"), record("b")}, true) == 2);
  CHECK(with.proxy.cut());
  // A claim looks at the head first; cut the answer to both.
  with.proxy.cut_answers_after(0);
  auto head = with.log->claim(one, 1, node_b, record("claimed"));
  REQUIRE(head);
  CHECK(head->epoch == 2);
  for (const std::size_t bytes : {150U, 250U, 350U}) {
    with.proxy.cut_answers_after(bytes);
    const auto again = with.log->claim(one, head->epoch, node_a, record("again"));
    REQUIRE(again);
    CHECK(again->epoch == head->epoch + 1);
    CHECK(again->owner == node_a);
    CHECK(again->running);
    head = again;
  }
  CHECK(with.texts() == words{"a", "b", "claimed", "again", "again", "again"});
  with.proxy.cut_answers_after(0);
  CHECK(with.log->erase(one));
  CHECK(with.proxy.cut());
  CHECK(with.texts() == words{"not_found"});
}

TEST_CASE("many sessions share the fate of their connection, each record goes in once") {
  behind_proxy with;
  constexpr std::size_t sessions = 20;
  for (std::size_t i = 0; i < sessions; ++i)
    REQUIRE(with.log->open(session(i), tenant, node_a, {record("0")}, false));
  std::vector<std::thread> writers;
  std::atomic<int> faults{0};
  std::atomic<std::size_t> good{0};
  std::atomic<bool> done{false};
  for (std::size_t i = 0; i < sessions; ++i)
    writers.emplace_back([&, i] {
      for (sequence_number at = 1; at <= 30; ++at)
        if (append_now(*with.log, more(session(i), at, {record(std::to_string(at))})) == at + 1)
          ++good;
        else
          ++faults;
    });
  std::thread cutter([&] {
    for (std::size_t n = 0; !done; ++n) {
      n % 2 == 0 ? with.proxy.cut_answers_after(n * 37 % 900) : with.proxy.cut_requests_after(n * 53 % 9000);
      // Again when there was some progress: a connection takes its time to be made.
      for (const auto before = good.load(); !done && good < before + 2 * sessions;)
        std::this_thread::sleep_for(milliseconds(1));
    }
  });
  for (auto& writer : writers)
    writer.join();
  done = true;
  cutter.join();
  CHECK(faults == 0);
  for (std::size_t i = 0; i < sessions; ++i) {
    const auto texts = with.texts(session(i));
    REQUIRE(texts.size() == 31);
    for (std::size_t n = 0; n < texts.size(); ++n)
      CHECK(texts[n] == std::to_string(n));
  }
  CHECK(with.log->counters().failures > 2);
}

TEST_CASE("without a server appends wait for their deadline, and reads fail at once") {
  behind_proxy with(milliseconds(2'500));
  REQUIRE(with.log->open(one, tenant, node_a, {record("a")}, false));
  REQUIRE(with.log->head(one));
  with.proxy.close_gate();
  const auto begin = std::chrono::steady_clock::now();
  const auto failed = append_now(*with.log, more(one, 1, {record("x")}));
  const auto took = std::chrono::steady_clock::now() - begin;
  REQUIRE_FALSE(failed);
  CHECK((failed.error().code == errc::io || failed.error().code == errc::deadline));
  CHECK(took >= milliseconds(2'000));
  CHECK_FALSE(with.log->trouble().empty());
  CHECK(with.log->head(one).error().code == errc::io);
  with.proxy.open_gate();
  const auto end = begin + std::chrono::seconds(20);
  while (!with.log->trouble().empty() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(milliseconds(20));
  CHECK(with.log->trouble().empty());
  result<journal_head> head = with.log->head(one);
  while (!head && std::chrono::steady_clock::now() < end)
    head = with.log->head(one);
  REQUIRE(head);
  CHECK(head->sequence == 1);
  CHECK(append_now(*with.log, more(one, 1, {record("b")})) == 2);
}

TEST_CASE("an append that is unknown at its deadline hides the session until it is settled") {
  behind_proxy with(milliseconds(2'500));
  REQUIRE(with.log->open(one, tenant, node_a, {record("a")}, false));
  REQUIRE(with.log->open(session(2), tenant, node_a, {record("other")}, false));
  with.proxy.cut_answers_after(0, false);
  result<sequence_number> answer;
  std::thread writer([&] { answer = append_now(*with.log, more(one, 1, {record("b")})); });
  while (!with.proxy.cut())
    std::this_thread::sleep_for(milliseconds(1));
  writer.join();
  REQUIRE_FALSE(answer);
  CHECK((answer.error().code == errc::io || answer.error().code == errc::deadline));
  CHECK(with.log->head(one).error().code == errc::io);
  with.proxy.open_gate();
  result<journal_head> head = with.log->head(one);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (; !head && std::chrono::steady_clock::now() < end; head = with.log->head(one))
    std::this_thread::sleep_for(milliseconds(10));
  REQUIRE(head);
  CHECK(head->sequence == 2);
  CHECK(append_now(*with.log, more(one, 2, {record("c")})) == 3);
  CHECK(with.texts() == words{"a", "b", "c"});
}

TEST_CASE("a connection that swallows everything is left for another one") {
  behind_proxy with(milliseconds(8'000));
  REQUIRE(with.log->open(one, tenant, node_a, {record("a")}, false));
  // The server never hears of the append; asked beside, it says that nobody works on it.
  const auto before = with.proxy.connections();
  with.proxy.swallow(true);
  result<sequence_number> answer;
  std::thread writer([&] { answer = append_now(*with.log, more(one, 1, {record("b")})); });
  std::this_thread::sleep_for(milliseconds(300));
  with.proxy.swallow(false);
  with.proxy.close_gate();
  with.proxy.open_gate();
  writer.join();
  CHECK(say(answer) == "2");
  CHECK(with.proxy.connections() > before);
  CHECK(with.texts() == words{"a", "b"});
}
