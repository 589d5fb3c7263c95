// Tables, versions, rights and settings of a real server.

#include "services/journal/postgres/postgres_journal.hpp"

#include "services/journal/postgres/schema.hpp"
#include "tests/support/postgres_server.hpp"
#include "tests/unit/services/journal/records.hpp"

#include <catch2/catch.hpp>

#include <thread>

using namespace godwit;
using namespace godwit::test;

namespace {

const session_id one = session(1);

class collector final : public journal_observer {
 public:
  void warning(std::string_view text) override {
    const std::lock_guard lock(mutex_);
    all_ += std::string(text) + "\n";
  }
  std::string all() {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  std::mutex mutex_;
  std::string all_;
};

postgres_journal_options options(const std::string& schema, const std::string& user = "godwit") {
  postgres_journal_options out;
  out.url = postgres_server::common().url(user);
  out.schema = schema;
  out.allow_unsafe = true;
  out.queue.deadline = std::chrono::milliseconds(3'000);
  return out;
}

std::string ask(const std::string& sql) {
  return postgres_server::common().ask(sql);
}

error failure(postgres_journal_options what) {
  auto made = postgres_journal::create(std::move(what));
  REQUIRE_FALSE(made);
  return made.error();
}

} // namespace

TEST_CASE("nodes that start at the same time make the tables once") {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&] {
      if (postgres_journal::create(options("together")))
        ++good;
    });
  for (auto& thread : threads)
    thread.join();
  CHECK(good == 6);
  CHECK(ask("SELECT version FROM together.schema_version") == "1");
  CHECK(
    ask("SELECT count(*) FROM pg_class WHERE relnamespace = 'together'::regnamespace AND relispartition AND "
        "relkind = 'r'")
    == "16");
}

TEST_CASE("newer tables are refused and left alone") {
  REQUIRE(postgres_journal::create(options("newer")));
  ask("UPDATE newer.schema_version SET version = 2");
  const auto why = failure(options("newer"));
  CHECK(why.code == errc::unsupported);
  CHECK(why.message.find("version 2") != std::string::npos);
  CHECK(ask("SELECT version FROM newer.schema_version") == "2");
}

TEST_CASE("a role that may not make tables works on those that are there") {
  ask("CREATE ROLE application LOGIN");
  CHECK(failure(options("lent", "application")).code == errc::permission);
  REQUIRE(postgres_journal::create(options("lent")));
  ask("GRANT USAGE ON SCHEMA lent TO application");
  ask("GRANT SELECT ON lent.schema_version TO application");
  ask("GRANT SELECT, INSERT, UPDATE, DELETE ON lent.heads, lent.records TO application");
  const auto log = postgres_journal::create(options("lent", "application"));
  REQUIRE(log);
  REQUIRE((*log)->open(one, tenant, node_a, {record("a")}, false));
  CHECK(append_now(**log, more(one, 1, {record("b")})) == 2);
  CHECK((*log)->claim(one, 1, node_b, record("c"))->epoch == 2);
  CHECK(texts(*(*log)->read(one, 1, 10)) == std::vector<std::string>{"a", "b", "c"});
  CHECK((*log)->erase(one));
  // And only on those.
  ask("REVOKE INSERT ON lent.records FROM application");
  CHECK((*log)->open(one, tenant, node_a, {record("a")}, false).error().code == errc::io);
  CHECK((*log)->head(one).error().code == errc::not_found);
}

TEST_CASE("a database that may lose what it acknowledged is refused unless allowed, and told of") {
  auto careful = options("unsafe");
  careful.allow_unsafe = false;
  const auto why = failure(careful);
  CHECK(why.code == errc::unsupported);
  CHECK(why.message.find("fsync is off") != std::string::npos);
  auto allowed = options("unsafe");
  const auto words = std::make_shared<collector>();
  allowed.observer = words;
  const auto log = postgres_journal::create(allowed);
  REQUIRE(log);
  CHECK(words->all().find("may be lost") != std::string::npos);
}

TEST_CASE("a server as it comes is taken, and its promise told") {
  const postgres_server usual;
  auto plain = options("godwit");
  plain.url = usual.url();
  plain.allow_unsafe = false;
  const auto words = std::make_shared<collector>();
  plain.observer = words;
  const auto log = postgres_journal::create(plain);
  REQUIRE(log);
  CHECK(
    (*log)->promise() == "an acknowledged record survives a crash of the database, not the loss of its disk");
  CHECK(words->all().find((*log)->promise()) != std::string::npos);
}

TEST_CASE("a damaged record quarantines its session and no other, and it can be erased") {
  const auto log = postgres_journal::create(options("damage"));
  REQUIRE(log);
  for (const auto& of : {one, session(2)})
    REQUIRE((*log)->open(of, tenant, node_a, {record("a"), record("b"), record("c")}, false));
  // One bit in the middle of the second record.
  ask("UPDATE damage.records SET body = set_byte(body, 30, get_byte(body, 30) # 4) WHERE sequence = 2 AND "
      "session = "
      "'"
      + one.value + "'::bytea");
  CHECK(texts(*(*log)->read(one, 1, 1)) == std::vector<std::string>{"a"});
  CHECK((*log)->read(one, 1, 10).error().code == errc::quarantined);
  CHECK((*log)->head(one).error().code == errc::quarantined);
  CHECK((*log)->counters().quarantined == 1);
  CHECK(append_now(**log, more(one, 3, {record("d")})).error().code == errc::quarantined);
  CHECK((*log)->list({}, 10)->front().quarantined);
  CHECK((*log)->read(session(2), 1, 10)->size() == 3);
  CHECK((*log)->erase(one));
  REQUIRE((*log)->open(one, tenant, node_a, {record("new")}, false));
  CHECK(texts(*(*log)->read(one, 1, 10)) == std::vector<std::string>{"new"});
}

TEST_CASE("a missing record and one at another's place do not check") {
  const auto log = postgres_journal::create(options("places"));
  REQUIRE(log);
  for (const auto& of : {one, session(2)})
    REQUIRE((*log)->open(of, tenant, node_a, {record("a"), record("b"), record("c")}, false));
  ask("DELETE FROM places.records WHERE sequence = 2 AND session = '" + one.value + "'::bytea");
  CHECK((*log)->read(one, 1, 10).error().code == errc::quarantined);
  ask("UPDATE places.records r SET body = (SELECT body FROM places.records o WHERE o.session = r.session AND "
      "o.sequence = 3) WHERE sequence = 2 AND session = '"
      + session(2).value + "'::bytea");
  CHECK((*log)->read(session(2), 1, 10).error().code == errc::quarantined);
}

TEST_CASE("a password stays out of what is told") {
  auto& guarded = postgres_server::common();
  postgres_journal_options wrong;
  wrong.url = "postgresql://nobody:pass-word-1@" + guarded.host_and_port() + "/postgres";
  wrong.queue.deadline = std::chrono::milliseconds(500);
  const auto words = std::make_shared<collector>();
  wrong.observer = words;
  const auto why = failure(wrong);
  CHECK(why.message.find("nobody") != std::string::npos);
  CHECK(why.message.find("pass-word-1") == std::string::npos);
  CHECK(words->all().find("pass-word-1") == std::string::npos);
  wrong.url = "postgresql://nobody:pass-word-1@host/x?bad=pass-word-1";
  CHECK(failure(wrong).message.find("pass-word-1") == std::string::npos);
}

TEST_CASE("names of schemas that could be more than a name are refused") {
  for (const auto* bad : {"", "a b", "a;b", "A", "1a", "pg_x", "a\"b", "a.b"})
    CHECK_FALSE(postgres::good_schema_name(bad));
  CHECK(postgres::good_schema_name("godwit_2"));
  CHECK(failure(options("a;b")).code == errc::invalid_argument);
}

TEST_CASE("a session of another isolation level gets the one that fences need") {
  ask("CREATE ROLE strict LOGIN SUPERUSER");
  ask("ALTER ROLE strict SET default_transaction_isolation = 'serializable'");
  const auto log = postgres_journal::create(options("strict", "strict"));
  REQUIRE(log);
  const auto other = postgres_journal::create(options("strict"));
  REQUIRE(other);
  REQUIRE((*log)->open(one, tenant, node_a, {record("0")}, false));
  for (sequence_number round = 1; round <= 50; ++round) {
    int won = 0;
    std::vector<std::thread> threads;
    std::mutex mutex;
    for (auto* each : {log->get(), other->get()})
      threads.emplace_back([&, each] {
        const auto answer = append_now(*each, more(one, round, {record("x")}));
        const std::lock_guard lock(mutex);
        won += answer ? 1 : 0;
        if (!answer)
          CHECK(answer.error().code == errc::stale_sequence);
      });
    for (auto& thread : threads)
      thread.join();
    CHECK(won == 1);
  }
}
