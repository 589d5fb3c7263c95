#include "services/journal/bench.hpp"

#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

TEST_CASE("the bench measures both sides and leaves nothing behind") {
  const temporary_folder folder;
  journal_bench_options options;
  options.folder = folder.path();
  options.rounds = 3;
  options.round = std::chrono::milliseconds(100);
  const auto measured = measure_journal(options);
  REQUIRE(measured);
  CHECK(measured->journal.records_per_s > 0);
  CHECK(measured->raw.records_per_s > 0);
  CHECK(measured->journal.p50 <= measured->journal.p99);
  CHECK(measured->raw.p50 <= measured->raw.p99);
  // Sixty-four sessions share syncs.
  CHECK(measured->journal.records_per_sync > 2);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a bench without a disk or without sense is refused") {
  journal_bench_options options;
  options.folder = "/proc";
  CHECK(measure_journal(options).error().code == errc::io);
  options.sessions = 0;
  CHECK(measure_journal(options).error().code == errc::invalid_argument);
}
