#include "tools/bench/cold_bench.hpp"

#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using namespace godwit::bench;

TEST_CASE("the bench of the cold store measures all sides and leaves nothing behind") {
  const temporary_folder folder;
  cold_settings settings;
  settings.folder = folder.path();
  settings.megabytes = 24;
  settings.batch = 16;
  settings.rounds = 1;
  const auto rates = cold(settings);
  REQUIRE(rates);
  CHECK(rates->block_bytes == 368'640);
  CHECK(rates->blocks == (24U << 20U) / 368'640);
  for (const auto rate : {rates->write, rates->file_write, rates->file_write_synced, rates->read,
         rates->file_read, rates->read_warm, rates->file_read_warm, rates->full_write})
    CHECK(rate > 0);
  // Noise does not shrink, and is written once at least.
  CHECK(rates->write_amplification >= 1);
  CHECK(rates->space_amplification >= 1);
  CHECK(rates->evicted > 0);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a bench of nothing, or where nothing can be written, is refused") {
  cold_settings settings;
  settings.folder = "/proc";
  settings.megabytes = 1;
  CHECK(cold(settings).error().code == errc::io);
  settings.rounds = 0;
  CHECK(cold(settings).error().code == errc::invalid_argument);
}
