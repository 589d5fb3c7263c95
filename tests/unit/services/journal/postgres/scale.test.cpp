// Many sessions; takes minutes with sanitizers, so it runs when it is named: test_journal_postgres_faults
// '[long]'.

#include "services/journal/postgres/postgres_journal.hpp"

#include "tests/support/postgres_server.hpp"
#include "tests/unit/services/journal/records.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <thread>

using namespace godwit;
using namespace godwit::test;

TEST_CASE("a hundred thousand sessions are opened, listed while others write, and read", "[.][long]") {
  constexpr std::size_t count = 100'000;
  postgres_journal_options options;
  options.url = postgres_server::common().url();
  options.schema = "scale";
  options.allow_unsafe = true;
  const auto log = postgres_journal::create(options);
  REQUIRE(log);
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> faults{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 32; ++i)
    threads.emplace_back([&] {
      for (auto number = next++; number < count; number = next++)
        if (!(*log)->open(session(number), tenant, node_a, {record("opened"), record("accepted")}, false))
          ++faults;
    });
  for (auto& thread : threads)
    thread.join();
  REQUIRE(faults == 0);
  CHECK((*log)->counters().syncs < count);

  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (sequence_number at = 2; !done; ++at)
      if (!append_now(**log, more(session(7), at, {record("more")})))
        ++faults;
  });
  const auto begin = std::chrono::steady_clock::now();
  std::size_t seen = 0;
  session_id cursor;
  for (;;) {
    const auto page = (*log)->list(cursor, 1000);
    REQUIRE(page);
    if (page->empty())
      break;
    for (const auto& head : *page)
      REQUIRE(head.session == session(seen++));
    cursor = page->back().session;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  done = true;
  writer.join();
  CHECK(seen == count);
  CHECK(faults == 0);
  for (std::size_t number = 10; number < count; number += 997)
    CHECK((*log)->read(session(number), 1, 10)->size() == 2);
  WARN("listed in " << took.count() << " s");
}
