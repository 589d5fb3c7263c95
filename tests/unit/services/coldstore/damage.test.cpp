// What becomes of a store whose bytes have changed: wrong pages never come out of it.

#include "services/coldstore/key_file.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/unit/services/coldstore/texts.hpp"
#include "tests/unit/services/journal/faulty_disk.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <thread>

using namespace godwit;
using namespace godwit::test;
namespace fs = std::filesystem;

namespace {

void flip(const fs::path& file, std::uintmax_t at, unsigned bit) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(at));
  const auto byte = static_cast<char>(stream.get() ^ (1 << bit));
  stream.seekp(static_cast<std::streamoff>(at));
  stream.put(byte);
}

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.file_size() != 0)
      found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

std::string content(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Changes one bit in the pages of a block, wherever it lies.
void damage(const fs::path& folder, const std::vector<std::byte>& pages) {
  const std::string piece(reinterpret_cast<const char*>(pages.data()), 64);
  for (const auto& file : files_of(folder))
    if (const auto at = content(file).find(piece); file.extension() == ".blob" && at != std::string::npos)
      flip(file, at + 40, 3);
}

std::vector<text> some_texts() {
  std::vector<text> made;
  for (std::uint32_t i = 0; i < 6; ++i)
    made.emplace_back(i, 8);
  return made;
}

} // namespace

TEST_CASE("a flipped bit anywhere in the store's files is found or does no harm") {
  const temporary_folder folder;
  faulty_environment environment;
  environment.disk->skip_syncs();
  const auto original = folder.path() / "original";
  auto options = small_store(original);
  options.env = environment.env.get();
  const auto all = some_texts();
  {
    const auto store = open_cold_store(options);
    REQUIRE(store);
    for (const auto& one : all)
      REQUIRE((*store)->write(one.blocks()));
  }
  {
    // Opening moved the log into tables; what is in the log now stays there.
    const auto store = open_cold_store(options);
    REQUIRE((*store)->write(text(10, 4).blocks()));
  }
  const auto files = files_of(original);
  std::uintmax_t total = 0;
  for (const auto& file : files)
    total += fs::file_size(file);
  std::mt19937_64 random(11);
  std::uint64_t found = 0;
  std::uint64_t in_pages = 0;
  const auto copy = folder.path() / "copy";
  options.folder = copy;
  std::uint64_t warned = 0;
  options.warn = [&](std::string_view) { ++warned; };
  // 1,000 places; five at a time, since each store takes its time to open.
  for (int round = 0; round < 200; ++round) {
    fs::remove_all(copy);
    fs::copy(original, copy);
    bool in_log = false;
    bool in_blob = false;
    std::string where;
    for (int k = 0; k < 5; ++k) {
      // Small files have their turn, too; a third lie anywhere.
      fs::path file = files[random() % files.size()];
      if (k % 3 == 0) {
        auto at = random() % total;
        for (const auto& each : files)
          if (const auto size = fs::file_size(each); at >= size) {
            at -= size;
          } else {
            file = each;
            break;
          }
      }
      const auto at = random() % fs::file_size(file);
      flip(copy / file.filename(), at, static_cast<unsigned>(random() % 8));
      where += file.filename().string() + " at " + std::to_string(at) + "; ";
      in_log = in_log || file.extension() == ".log";
      in_blob = in_blob || file.extension() == ".blob";
    }
    INFO(where);
    warned = 0;
    auto store = open_cold_store(options);
    if (!store) {
      // Such as a format that no version has; never a crash, and said in words.
      REQUIRE(store.error().code != errc::internal);
      REQUIRE_FALSE(store.error().message.empty());
      ++found;
      continue;
    }
    std::size_t there = 0;
    std::size_t expected = 0;
    auto texts = all;
    texts.emplace_back(10, 4);
    for (const auto& one : texts) {
      const auto count = read_right(**store, one);
      REQUIRE(count != ~std::size_t{0});
      there += count;
      expected += one.names.size();
    }
    const auto damaged = (*store)->stats().damaged;
    if (there < expected) {
      ++found;
      // Only the end of a log may go without a word, as after a crash.
      REQUIRE((damaged != 0 || warned != 0 || in_log));
    }
    if (in_blob && there < expected)
      ++in_pages;
    // It is as good as new.
    REQUIRE((*store)->write(texts[0].blocks()));
    REQUIRE((*store)->write(text(11, 3).blocks()));
    REQUIRE(read_right(**store, text(11, 3)) == 3);
  }
  CHECK(found > 150);
  CHECK(in_pages > 100);
}

TEST_CASE("a damaged block is a miss, is deleted and counted, and can be written again") {
  const temporary_folder folder;
  const auto options = small_store(folder.path());
  const text one(1, 40);
  { REQUIRE((*open_cold_store(options))->write(one.blocks())); }
  damage(folder.path(), one.pages[5]);
  {
    const auto store = open_cold_store(options);
    CHECK((*store)->known(one.names) == 40);
    CHECK(read_right(**store, one) == 5);
    CHECK((*store)->stats().damaged == 1);
    CHECK((*store)->stats().blocks == 39);
    CHECK((*store)->known(one.names) == 5);
    // Those behind it are found again with it.
    REQUIRE((*store)->write(one.blocks(5, 6)));
    CHECK((*store)->stats().written == 1);
    CHECK(read_right(**store, one) == 40);
    CHECK((*store)->stats().damaged == 1);
  }
  CHECK(read_right(**open_cold_store(options), one) == 40);
}

TEST_CASE("a damaged block that is not written again takes those behind it along at the next start") {
  const temporary_folder folder;
  const auto options = small_store(folder.path());
  const text one(1, 40);
  { REQUIRE((*open_cold_store(options))->write(one.blocks())); }
  damage(folder.path(), one.pages[5]);
  {
    const auto store = open_cold_store(options);
    CHECK(read_right(**store, one) == 5);
    // The deletion is in the background; another commit is behind it.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    REQUIRE((*store)->write(text(2, 1).blocks()));
  }
  const auto store = open_cold_store(options);
  CHECK((*store)->stats().blocks == 6);
  CHECK((*store)->stats().evicted == 34);
  CHECK(read_right(**store, one) == 5);
  CHECK((*store)->stats().damaged == 0);
}

TEST_CASE("damage that a merge meets costs the damaged blocks and not the store") {
  const temporary_folder folder;
  auto options = small_store(folder.path(), 400 * small_record);
  options.write_buffer_bytes = std::size_t{32} << 10;
  std::vector<std::string> warnings;
  std::mutex mutex;
  options.warn = [&](std::string_view line) {
    const std::lock_guard lock(mutex);
    warnings.emplace_back(line);
  };
  const text bad(0, 20);
  const text good(1, 20);
  {
    const auto store = open_cold_store(options);
    for (const auto* one : {&bad, &good}) {
      // Worth keeping, so that merges meet them.
      auto blocks = one->blocks();
      for (auto& block : blocks)
        block.hits = 255;
      REQUIRE((*store)->write(blocks));
    }
  }
  damage(folder.path(), bad.pages[7]);
  const auto store = open_cold_store(options);
  REQUIRE(store);
  // Of all else the first blocks stay, so that no file dies as a whole: pages are moved.
  std::uint32_t next = 10;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while ((*store)->stats().damaged == 0 && std::chrono::steady_clock::now() < deadline) {
    const text one(next++, 15);
    auto blocks = one.blocks();
    blocks[0].hits = 200;
    static_cast<void>((*store)->write(blocks));
  }
  REQUIRE((*store)->stats().damaged == 1);
  for (int i = 0; i < 2000 && (*store)->stats().degraded; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(read_right(**store, good) == 20);
  CHECK((*store)->known(bad.names) == 7);
  REQUIRE((*store)->write(bad.blocks()));
  CHECK(read_right(**store, bad) == 20);
  CHECK((*store)->stats().blocks > 300);
}

TEST_CASE("a store that is damaged beyond records is emptied with a word, and keeps its key") {
  const temporary_folder folder;
  auto options = small_store(folder.path());
  std::vector<std::string> warnings;
  options.warn = [&](std::string_view line) { warnings.emplace_back(line); };
  const text one(1, 40);
  { REQUIRE((*open_cold_store(options))->write(one.blocks())); }
  const auto key = content(folder.path() / "identity-key");
  const bool missing = GENERATE(false, true);
  for (const auto& file : files_of(folder.path()))
    if (file.filename().string().starts_with("MANIFEST")) {
      if (missing)
        fs::remove(file);
      else
        flip(file, fs::file_size(file) / 2, 1);
    }
  const auto store = open_cold_store(options);
  REQUIRE(store);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("it is emptied") != std::string::npos);
  CHECK((*store)->stats().blocks == 0);
  CHECK((*store)->stats().damaged == 1);
  CHECK(content(folder.path() / "identity-key") == key);
  REQUIRE((*store)->write(one.blocks()));
  CHECK(read_right(**store, one) == 40);
}

TEST_CASE("a lost blob file costs its blocks and nothing else") {
  const temporary_folder folder;
  const auto options = small_store(folder.path());
  const text one(1, 40);
  const text two(2, 40);
  {
    const auto store = open_cold_store(options);
    REQUIRE((*store)->write(one.blocks()));
    REQUIRE((*store)->write(two.blocks()));
  }
  for (const auto& file : files_of(folder.path()))
    if (file.extension() == ".blob") {
      fs::remove(file);
      break;
    }
  const auto store = open_cold_store(options);
  REQUIRE(store);
  const auto first = read_right(**store, one);
  const auto second = read_right(**store, two);
  CHECK((first == 0 || first == 40));
  CHECK((second == 0 || second == 40));
  REQUIRE((*store)->write(text(3, 5).blocks()));
  CHECK(read_right(**store, text(3, 5)) == 5);
}
