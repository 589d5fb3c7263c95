// Reads beside writes, evictions and damage: the right pages or none.

#include "tests/support/temporary_folder.hpp"
#include "tests/unit/services/coldstore/texts.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <fstream>
#include <thread>

using namespace godwit;
using namespace godwit::test;

TEST_CASE("reads that race with writes and evictions give the right pages or none") {
  const temporary_folder folder;
  auto options = small_store(folder.path(), 120 * small_record);
  options.write_buffer_bytes = std::size_t{32} << 10;
  const auto store = open_cold_store(options);
  REQUIRE(store);
  std::vector<text> texts;
  for (std::uint32_t i = 0; i < 24; ++i)
    texts.emplace_back(i, 4 + i);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::uint64_t> right{0};
  std::atomic<std::uint64_t> refused{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i)
    threads.emplace_back([&, i] {
      std::mt19937 random(100 + i);
      while (!stop) {
        const auto count = read_right(**store, texts[random() % texts.size()]);
        (count == ~std::size_t{0} ? wrong : right) += count == ~std::size_t{0} ? 1 : count;
        static_cast<void>((*store)->stats());
      }
    });
  for (unsigned i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      std::mt19937 random(200 + i);
      while (!stop) {
        const auto& one = texts[random() % texts.size()];
        if (!(*store)->write(one.blocks(0, 1 + random() % one.names.size())))
          ++refused;
      }
    });
  std::this_thread::sleep_for(std::chrono::seconds(4));
  stop = true;
  for (auto& thread : threads)
    thread.join();
  CHECK(wrong == 0);
  CHECK(right > 100);
  CHECK(refused == 0);
  const auto stats = (*store)->stats();
  CHECK(stats.evicted > 50);
  CHECK(stats.hits == right);
  // A read that comes after an eviction is a miss, not damage.
  CHECK(stats.damaged == 0);
  CHECK(stats.bytes == stats.blocks * small_record);
  CHECK(known_of(**store, texts) == stats.blocks);
}

TEST_CASE("reads that race with the deletion of damaged blocks, and with writing them again") {
  const temporary_folder folder;
  const auto options = small_store(folder.path());
  std::vector<text> texts;
  for (std::uint32_t i = 0; i < 8; ++i)
    texts.emplace_back(i, 20);
  {
    const auto store = open_cold_store(options);
    for (const auto& one : texts)
      REQUIRE((*store)->write(one.blocks()));
  }
  // Every fifth kilobyte of the pages is changed.
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().extension() != ".blob")
      continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    const auto size = static_cast<std::streamoff>(entry.file_size());
    for (std::streamoff at = 1000; at < size; at += 5000) {
      file.seekg(at);
      const auto byte = static_cast<char>(file.get() ^ 1);
      file.seekp(at);
      file.put(byte);
    }
  }
  const auto store = open_cold_store(options);
  REQUIRE(store);
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i)
    threads.emplace_back([&, i] {
      std::mt19937 random(i);
      for (int round = 0; round < 60; ++round) {
        const auto& one = texts[random() % texts.size()];
        wrong += read_right(**store, one) == ~std::size_t{0} ? 1 : 0;
        if (i == 0)
          static_cast<void>((*store)->write(one.blocks()));
      }
    });
  for (auto& thread : threads)
    thread.join();
  CHECK(wrong == 0);
  CHECK((*store)->stats().damaged > 5);
  // A read finds at most one damaged block, which is then written again.
  for (const auto& one : texts) {
    for (int round = 0; round < 30 && read_right(**store, one) != 20; ++round)
      REQUIRE((*store)->write(one.blocks()));
    CHECK(read_right(**store, one) == 20);
  }
  CHECK((*store)->stats().blocks == 160);
}
