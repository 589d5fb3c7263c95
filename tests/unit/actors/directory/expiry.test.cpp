#include "actors/directory/expiry.hpp"
#include "actors/session/memory_journal.hpp"
#include "tests/unit/actors/session/journal_builder.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

namespace {

const session_id id("ses_0123456789abcdef0123456789abcdef");

/// The verdict on a journal whose session was opened at 5 s, when it is `now`, with a day's keeping.
expiry verdict(const journal_builder& journal, std::int64_t now) {
  memory_journal log;
  std::vector<journal_record> records;
  for (const auto& record : journal.records)
    records.push_back(record.record);
  REQUIRE(log.open(id, tenant_id("t"), node_name("a"), records, false));
  const auto found = check_expiry(log, *log.head(id), now, std::chrono::hours(24));
  REQUIRE(found);
  return *found;
}

} // namespace

TEST_CASE("an expired session is closed first and erased later") {
  const auto minute = journal_builder().opened(schema::OnBusy::QUEUE, {}, 60);
  CHECK(verdict(minute, 64'999) == expiry::keep);
  CHECK(verdict(minute, 65'000) == expiry::close);
  CHECK(verdict(minute, 65'000 + 86'399'999) == expiry::close);
  CHECK(verdict(minute, 65'000 + 86'400'000) == expiry::erase);
  auto closed = minute;
  closed.closed();
  CHECK(verdict(closed, 70'000) == expiry::keep);
  CHECK(verdict(closed, 65'000 + 86'400'000) == expiry::erase);
}

TEST_CASE("a session without a time to live, or with one of ages, stays") {
  CHECK(verdict(journal_builder().opened(), 1'000'000'000'000'000) == expiry::keep);
  CHECK(verdict(journal_builder().opened(schema::OnBusy::QUEUE, {}, ~std::uint64_t{0}), 1'000'000'000'000'000)
        == expiry::keep);
}

TEST_CASE("a journal that cannot be read has no verdict") {
  memory_journal log;
  journal_head head;
  head.session = id;
  CHECK(check_expiry(log, head, 0, std::chrono::hours(1)).error().code == errc::not_found);
}
