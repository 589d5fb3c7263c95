// A hundred thousand sessions in one journal.

#include "tests/unit/services/journal/engines.hpp"

#include <atomic>
#include <fstream>
#include <thread>

using namespace godwit;
using namespace godwit::test;

namespace {

/// Resident memory of this process, in bytes.
std::size_t resident() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0;
  std::size_t pages = 0;
  file >> total >> pages;
  return pages * 4096;
}

} // namespace

TEST_CASE("a hundred thousand sessions are opened, listed, read and reopened quickly and in little memory") {
  constexpr std::size_t count = 100'000;
  const temporary_folder folder;
  rocks_journal_options options;
  options.folder = folder.path() / "journal";
  const auto before = resident();
  {
    const auto log = rocks_journal::create(options);
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
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto log = rocks_journal::create(options);
  const std::chrono::duration<double> open_time = std::chrono::steady_clock::now() - begin;
  REQUIRE(log);
  // Below half a second by far in a release build; here with sanitizers on a busy machine.
  CHECK(open_time.count() < 5);

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
  CHECK(seen == count);
  for (std::size_t number = 0; number < count; number += 997)
    CHECK((*log)->read(session(number), 1, 10)->size() == 2);
  WARN("opened in " << open_time.count() << " s, resident memory grew by "
                    << (resident() - before) / 1'000'000 << " MB");
}
