#include "services/coldstore/cold_options.hpp"

#include "services/coldstore/key_file.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/unit/services/coldstore/texts.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <thread>

using namespace godwit;
using namespace godwit::test;
namespace fs = std::filesystem;

namespace {

std::unique_ptr<cold_store> must_open(const cold_options& options) {
  auto made = open_cold_store(options);
  if (!made)
    FAIL(made.error().message);
  return std::move(*made);
}

std::uintmax_t bytes_in(const fs::path& folder) {
  std::uintmax_t sum = 0;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder))
    if (const auto size = entry.file_size(code); !code)
      sum += size;
  return sum;
}

} // namespace

TEST_CASE("blocks that were written are there, before and after a restart") {
  const temporary_folder folder;
  // Some go into the log, some past it.
  const text small(1, 3);
  const text large(2, 100);
  {
    const auto store = must_open(small_store(folder.path()));
    CHECK(store->known(small.names) == 0);
    REQUIRE(store->write(small.blocks()));
    REQUIRE(store->write(large.blocks()));
    CHECK(store->known(small.names) == 3);
    CHECK(read_right(*store, small) == 3);
    CHECK(read_right(*store, large) == 100);
  }
  const auto store = must_open(small_store(folder.path()));
  CHECK(store->known(small.names) == 3);
  CHECK(store->known(large.names) == 100);
  CHECK(read_right(*store, small) == 3);
  CHECK(read_right(*store, large) == 100);
  const auto stats = store->stats();
  CHECK(stats.blocks == 103);
  CHECK(stats.bytes == 103 * small_record);
  CHECK(stats.hits == 103);
  CHECK(stats.misses == 0);
  CHECK(stats.damaged == 0);
  CHECK_FALSE(stats.degraded);
}

TEST_CASE("a read ends with the first block that is not there, and counts the rest as misses") {
  const temporary_folder folder;
  const auto store = must_open(small_store(folder.path()));
  const text one(1, 6);
  REQUIRE(store->write(one.blocks(0, 4)));
  CHECK(store->known(one.names) == 4);
  CHECK(read_right(*store, one) == 4);
  CHECK(store->stats().hits == 4);
  CHECK(store->stats().misses == 2);
  // Behind a gap nothing is kept.
  REQUIRE(store->write(one.blocks(5)));
  CHECK(store->stats().written == 4);
  REQUIRE(store->write(one.blocks(3)));
  CHECK(store->stats().written == 6);
  CHECK(read_right(*store, one) == 6);
}

TEST_CASE("blocks that are there cost nothing") {
  const temporary_folder folder;
  const auto store = must_open(small_store(folder.path()));
  const text one(1, 50);
  REQUIRE(store->write(one.blocks()));
  const auto before = bytes_in(folder.path());
  for (int i = 0; i < 10; ++i)
    REQUIRE(store->write(one.blocks()));
  CHECK(bytes_in(folder.path()) == before);
  CHECK(store->stats().written == 50);
}

TEST_CASE("the store stays within its limit, and keeps what is read") {
  const temporary_folder folder;
  auto options = small_store(folder.path(), 100 * small_record);
  const text often(0, 10);
  {
    const auto store = must_open(options);
    REQUIRE(store->write(often.blocks()));
    for (std::uint32_t i = 1; i < 40; ++i) {
      CHECK(read_right(*store, often) == 10);
      const text other(i, 20);
      REQUIRE(store->write(other.blocks()));
      CHECK(read_right(*store, other) == 20);
      CHECK(store->stats().bytes <= 100 * small_record);
    }
    const auto stats = store->stats();
    CHECK(stats.blocks == 100);
    CHECK(stats.written == 10 + 39 * 20);
    CHECK(stats.evicted == stats.written - 100);
    CHECK(stats.limit_bytes == options.limit_bytes);
  }
  // The order survives, too: the last text goes after those before it.
  const auto store = must_open(options);
  CHECK(store->stats().blocks == 100);
  CHECK(read_right(*store, text(39, 20)) == 20);
  REQUIRE(store->write(text(50, 40).blocks()));
  CHECK(store->known(text(39, 20).names) == 20);
}

TEST_CASE("a store with a smaller limit than before evicts at its start") {
  const temporary_folder folder;
  std::vector<text> all;
  for (std::uint32_t i = 0; i < 10; ++i)
    all.emplace_back(i, 10);
  {
    const auto store = must_open(small_store(folder.path()));
    for (const auto& one : all)
      REQUIRE(store->write(one.blocks()));
  }
  const auto store = must_open(small_store(folder.path(), 30 * small_record));
  CHECK(store->stats().blocks == 30);
  CHECK(store->stats().evicted == 70);
  CHECK(known_of(*store, all) == 30);
  for (const auto& one : all)
    CHECK(read_right(*store, one) == store->known(one.names));
}

TEST_CASE("the disk does not fill up with what was evicted") {
  const temporary_folder folder;
  auto options = small_store(folder.path(), 500 * small_record);
  options.write_buffer_bytes = std::size_t{32} << 10;
  const auto store = must_open(options);
  std::uintmax_t most = 0;
  for (std::uint32_t i = 0; i < 150; ++i) {
    const text one(i, 20);
    REQUIRE(store->write(one.blocks()));
    // Some live for ever, so that no file dies as a whole.
    if (i % 10 == 0)
      for (int k = 0; k < 3; ++k)
        REQUIRE(read_right(*store, one) == 20);
    most = std::max(most, bytes_in(folder.path()));
  }
  CHECK(store->stats().evicted == 150 * 20 - 500);
  // A quarter more for what is dead, as much for what is being moved, logs and tables.
  CHECK(static_cast<double>(most) < 1.75 * static_cast<double>(options.limit_bytes));
}

TEST_CASE("another process, or another part of this one, is refused") {
  const temporary_folder folder;
  const auto first = must_open(small_store(folder.path()));
  const auto second = open_cold_store(small_store(folder.path()));
  REQUIRE_FALSE(second);
  CHECK(second.error().code == errc::conflict);
  CHECK(second.error().message
        == "the cold store in " + folder.path().string() + " is in use by another process");
  const text one(1, 3);
  REQUIRE(first->write(one.blocks()));
  CHECK(read_right(*first, one) == 3);
}

TEST_CASE("blocks of another model are not found, and make room") {
  const temporary_folder folder;
  const text old(1, 20);
  {
    const auto store = must_open(small_store(folder.path()));
    REQUIRE(store->write(old.blocks()));
  }
  auto options = small_store(folder.path(), 30 * small_record);
  options.scope.fingerprint = "another model";
  options.scope.shape = {1, 2, 8, kv_type::f16};
  const auto store = must_open(options);
  const text fresh(1, 40, "acme", options);
  CHECK(store->known(fresh.names) == 0);
  REQUIRE(store->write(fresh.blocks()));
  CHECK(read_right(*store, fresh) == 40);
  CHECK(store->stats().bytes <= options.limit_bytes);
  CHECK(store->stats().evicted > 0);
  // Even who knows the name of a block gets no pages of another shape or model.
  CHECK(read_right(*store, old) == 0);
}

TEST_CASE("blocks of another type of pages are not found, and given to nobody who knows their name") {
  const temporary_folder folder;
  auto options = small_store(folder.path());
  const text halves(1, 5);
  {
    const auto store = must_open(options);
    REQUIRE(store->write(halves.blocks()));
  }
  // bf16 pages are as large as those of fp16.
  options.scope.shape.type = kv_type::bf16;
  const text bfloats(1, 5, "acme", options);
  const auto store = must_open(options);
  CHECK(bfloats.pages[0].size() == halves.pages[0].size());
  CHECK(bfloats.names[0] != halves.names[0]);
  CHECK(store->known(bfloats.names) == 0);
  CHECK(read_right(*store, halves) == 0);
  REQUIRE(store->write(bfloats.blocks()));
  CHECK(read_right(*store, bfloats) == 5);
}

TEST_CASE("tenants do not meet") {
  const temporary_folder folder;
  const auto store = must_open(small_store(folder.path()));
  const text one(1, 3, "acme");
  const text other(1, 3, "bolt");
  REQUIRE(store->write(one.blocks()));
  CHECK(store->known(other.names) == 0);
  CHECK(read_right(*store, other) == 0);
  REQUIRE(store->write(other.blocks()));
  CHECK(read_right(*store, other) == 3);
  CHECK(store->stats().blocks == 6);
}

TEST_CASE("pages that shrink take less of the disk with zstd, and read the same") {
  const temporary_folder folder;
  auto options = small_store(folder.path());
  options.compress = true;
  text one(1, 100);
  for (auto& pages : one.pages)
    std::fill(pages.begin() + 64, pages.end(), std::byte{7});
  {
    const auto store = must_open(options);
    REQUIRE(store->write(one.blocks()));
    CHECK(read_right(*store, one) == 100);
    CHECK(store->stats().bytes == 100 * small_record);
  }
  CHECK(bytes_in(folder.path()) < 100 * small_record / 3);
  // What was written with it is read without it.
  options.compress = false;
  const auto store = must_open(options);
  CHECK(read_right(*store, one) == 100);
  REQUIRE(store->write(text(2, 100).blocks()));
  CHECK(read_right(*store, text(2, 100)) == 100);
}

TEST_CASE("a batch above what one commit takes is written in several") {
  const temporary_folder folder;
  auto options = small_store(folder.path());
  options.scope.shape = {16, 8, 64, kv_type::f32}; // 1 MiB a block
  options.write_buffer_bytes = std::size_t{16} << 20;
  const text one(1, 70, "acme", options);
  const auto store = must_open(options);
  REQUIRE(store->write(one.blocks()));
  CHECK(read_right(*store, one) == 70);
}

TEST_CASE("nothing is asked, nothing is done") {
  const temporary_folder folder;
  const auto store = must_open(small_store(folder.path()));
  CHECK(store->known({}) == 0);
  CHECK(store->read({}, {}) == 0);
  CHECK(store->write({}));
}

TEST_CASE("a folder that is not ours, or a limit of nothing, is refused") {
  const temporary_folder folder;
  CHECK(open_cold_store(small_store(folder.path(), 0)).error().code == errc::invalid_argument);
  CHECK(open_cold_store(small_store(folder.path() / "no" / "parent")).error().code == errc::io);
  std::ofstream(folder.path() / "CURRENT") << "MANIFEST-000001\n";
  CHECK(open_cold_store(small_store(folder.path())).error().code == errc::invalid_argument);
}
