#include "actors/session/memory_journal.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

namespace {

const session_id some{"ses_1"};

journal_record record(const std::string& text) {
  return journal_record::make([&](schema::Record::Builder b) { b.initClosed().setCause(text); });
}

result<sequence_number> begin(memory_journal& log) {
  return log.open(some, tenant_id("default"), node_name("a"), {record("1")}, false);
}

append_request more(sequence_number expected, const std::string& text) {
  return {some, expected, 1, {record(text)}, true};
}

/// A callback that keeps its answers.
journal::appended into(std::vector<result<sequence_number>>& answers) {
  return [&answers](result<sequence_number> answer) { answers.push_back(std::move(answer)); };
}

} // namespace

TEST_CASE("an append answers at once unless appends are held") {
  memory_journal log;
  REQUIRE(begin(log) == 1);
  std::vector<result<sequence_number>> answers;
  log.append(more(1, "2"), into(answers));
  REQUIRE(answers.size() == 1);
  CHECK(answers[0] == 2);

  log.hold();
  log.append(more(2, "3"), into(answers));
  log.append(more(3, "4"), into(answers));
  CHECK(answers.size() == 1);
  CHECK(log.waiting() == 2);
  CHECK(log.head(some)->sequence == 2);
  CHECK(log.release(1) == 1);
  CHECK(answers[1] == 3);
  log.resume();
  CHECK(answers[2] == 4);
  CHECK(log.read(some, 3, 10)->size() == 2);
}

TEST_CASE("a held append meets the fence of the moment when it is released") {
  memory_journal log;
  REQUIRE(begin(log));
  std::vector<result<sequence_number>> answers;
  log.hold();
  log.append(more(1, "2"), into(answers));
  REQUIRE(log.claim(some, 1, node_name("b"), record("claimed"))->epoch == 2);
  log.release();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].error().code == errc::stale_epoch);
}

TEST_CASE("an injected failure writes nothing, or writes and loses the answer") {
  memory_journal log;
  REQUIRE(begin(log));
  std::vector<result<sequence_number>> answers;
  log.fail_next(memory_journal::call::append, {errc::io, "", "", ""});
  log.append(more(1, "2"), into(answers));
  CHECK(answers.back().error().code == errc::io);
  CHECK(log.head(some)->sequence == 1);

  log.fail_next(memory_journal::call::append, {errc::io, "", "", ""}, 1, memory_journal::outcome::stored);
  log.append(more(1, "2"), into(answers));
  CHECK(answers.back().error().code == errc::io);
  CHECK(log.head(some)->sequence == 2);

  log.fail_next(memory_journal::call::head, {errc::deadline, "", "", ""}, 2);
  CHECK(log.head(some).error().code == errc::deadline);
  CHECK(log.head(some).error().code == errc::deadline);
  CHECK(log.head(some));
}

TEST_CASE("appends that wait when the journal goes are answered and not written") {
  const auto disk = std::make_shared<memory_disk>();
  std::vector<result<sequence_number>> answers;
  {
    memory_journal log(disk);
    REQUIRE(begin(log));
    log.hold();
    log.append(more(1, "2"), into(answers));
  }
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].error().code == errc::unavailable);
  CHECK(memory_journal(disk).head(some)->sequence == 1);
}

TEST_CASE("a damaged record quarantines its session until it is erased") {
  memory_journal log;
  REQUIRE(begin(log));
  log.damage(some, 1);
  CHECK(log.read(some, 1, 10).error().code == errc::quarantined);
  std::vector<result<sequence_number>> answers;
  log.append(more(1, "2"), into(answers));
  CHECK(answers[0].error().code == errc::quarantined);
  CHECK(log.list(session_id(), 10)->front().quarantined);
  CHECK(log.erase(some));
  CHECK(log.head(some).error().code == errc::not_found);
}
