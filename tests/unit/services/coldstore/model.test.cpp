// Any sequence of operations against a simple model.

#include "tests/support/temporary_folder.hpp"
#include "tests/unit/services/coldstore/texts.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using namespace godwit::test;

namespace {

std::unique_ptr<cold_store> must_open(const cold_options& options) {
  auto made = open_cold_store(options);
  if (!made)
    FAIL(made.error().message);
  return std::move(*made);
}

} // namespace

TEST_CASE("with room for all, the store is a map that survives restarts") {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const temporary_folder folder;
    std::mt19937 random(seed);
    auto options = small_store(folder.path());
    options.compress = seed == 3;
    std::vector<text> texts;
    for (std::uint32_t i = 0; i < 12; ++i)
      texts.emplace_back(i, 1 + random() % 60, i % 2 == 0 ? "acme" : "bolt");
    std::vector<std::size_t> expected(texts.size(), 0);
    std::uint64_t written = 0;
    std::uint64_t hits = 0;
    auto store = must_open(options);
    for (int action = 0; action < 120; ++action) {
      const auto which = random() % texts.size();
      const auto& one = texts[which];
      switch (random() % 8) {
      case 0:
        store.reset();
        store = must_open(options);
        REQUIRE(store->stats().blocks == written);
        hits = 0;
        break;
      case 1:
      case 2:
      case 3: {
        const auto from = random() % one.names.size();
        const auto until = from + 1 + random() % (one.names.size() - from);
        REQUIRE(store->write(one.blocks(from, until)));
        if (from <= expected[which] && until > expected[which]) {
          written += until - expected[which];
          expected[which] = until;
        }
        break;
      }
      default:
        REQUIRE(store->known(one.names) == expected[which]);
        REQUIRE(read_right(*store, one) == expected[which]);
        hits += expected[which];
      }
      const auto stats = store->stats();
      REQUIRE(stats.blocks == written);
      REQUIRE(stats.bytes == written * small_record);
      REQUIRE(stats.hits == hits);
      REQUIRE(stats.evicted == 0);
      REQUIRE(stats.damaged == 0);
      REQUIRE(stats.failures == 0);
    }
  }
}

TEST_CASE("with little room, what is known is right, counters add up, and restarts change nothing") {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const temporary_folder folder;
    std::mt19937 random(seed);
    const auto options = small_store(folder.path(), (40 + random() % 60) * small_record);
    std::vector<text> texts;
    for (std::uint32_t i = 0; i < 30; ++i)
      texts.emplace_back(i, 1 + random() % 40);
    auto store = must_open(options);
    for (int action = 0; action < 120; ++action) {
      const auto& one = texts[random() % texts.size()];
      if (random() % 12 == 0) {
        const auto before = store->stats();
        std::vector<std::size_t> known;
        for (const auto& each : texts)
          known.push_back(store->known(each.names));
        store.reset();
        store = must_open(options);
        REQUIRE(store->stats().blocks == before.blocks);
        REQUIRE(store->stats().bytes == before.bytes);
        for (std::size_t i = 0; i < texts.size(); ++i)
          REQUIRE(store->known(texts[i].names) == known[i]);
      } else if (random() % 3 == 0) {
        const auto known = store->known(one.names);
        REQUIRE(read_right(*store, one) == known);
      } else {
        REQUIRE(store->write(one.blocks()));
        REQUIRE(store->known(one.names) == std::min<std::size_t>(one.names.size(), 100));
      }
      const auto stats = store->stats();
      REQUIRE(stats.bytes == stats.blocks * small_record);
      REQUIRE(stats.bytes <= options.limit_bytes);
      REQUIRE(known_of(*store, texts) == stats.blocks);
      REQUIRE(stats.damaged == 0);
      REQUIRE(stats.failures == 0);
    }
    CHECK(store->stats().written > 0);
  }
}
