#include "services/coldstore/cold_index.hpp"

#include "tests/unit/services/coldstore/texts.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <optional>

using namespace godwit;
using namespace godwit::test;

namespace {

using step = cold_index::step;

std::size_t count(const std::vector<step>& steps, step::kind kind) {
  std::size_t sum = 0;
  for (const auto& each : steps)
    sum += each.what == kind ? 1U : 0U;
  return sum;
}

std::vector<step> write(cold_index& index, const std::vector<cold_block>& blocks) {
  auto steps = index.plan(blocks);
  index.confirm();
  return steps;
}

/// The same by brute force, from the definition of GreedyDual-Size-Frequency: blocks of one size, each worth
/// (1 + hits) * (1 + depth * 16 / 4096) on top of the worth of the last that went.
struct plain_index {
  struct entry {
    block_identity parent;
    std::uint32_t depth = 0;
    std::uint32_t hits = 0;
    double worth = 0;
  };
  struct less {
    bool operator()(const block_identity& a, const block_identity& b) const {
      return a.low != b.low ? a.low < b.low : a.high < b.high;
    }
  };
  std::map<block_identity, entry, less> blocks;
  double age = 0;

  static double gain(const entry& one) { return (1.0 + one.hits) * (1.0 + one.depth * 16.0 / 4096); }
  bool is_end(const block_identity& which) const {
    for (const auto& [name, one] : blocks)
      if (one.depth != 0 && one.parent == which)
        return false;
    return true;
  }
};

} // namespace

TEST_CASE("a planned block is known only when it is confirmed") {
  cold_index index(1 << 20);
  const text one(1, 5);
  const auto steps = index.plan(one.blocks());
  REQUIRE(steps.size() == 5);
  CHECK(index.known(one.names) == 0);
  CHECK(index.bytes() == 0);
  index.confirm();
  CHECK(index.known(one.names) == 5);
  CHECK(index.blocks() == 5);
  CHECK(index.bytes() == 5 * small_record);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(steps[i].identity == one.names[i]);
    CHECK(steps[i].block == i);
    CHECK(steps[i].bytes == small_record);
  }
  CHECK(index.plan(one.blocks()).empty());
}

TEST_CASE("a block without its parent, or of more than the limit, is left out with all behind it") {
  cold_index index(10 * small_record);
  const text one(1, 5);
  auto blocks = one.blocks();
  CHECK(index.plan(one.blocks(2)).empty());
  index.confirm();
  blocks[2].tenant = "a tenant whose name makes the record longer than it may be; and so it goes on";
  const std::string endless(256, 'x');
  blocks[2].tenant = endless;
  CHECK(write(index, blocks).size() == 2);
  CHECK(index.known(one.names) == 2);
  cold_index tiny(small_record - 1);
  CHECK(tiny.plan(one.blocks()).empty());
}

TEST_CASE("what does not fit beside the blocks before it is left out") {
  cold_index index(3 * small_record);
  const text one(1, 5);
  CHECK(write(index, one.blocks()).size() == 3);
  CHECK(index.known(one.names) == 3);
  // Its own beginning is not given up for its end.
  CHECK(write(index, one.blocks()).empty());
  CHECK(index.known(one.names) == 3);
  // Another text may have the room.
  const text two(2, 2);
  const auto steps = write(index, two.blocks());
  CHECK(count(steps, step::kind::put) == 2);
  CHECK(count(steps, step::kind::drop) == 2);
  CHECK(index.known(two.names) == 2);
  CHECK(index.known(one.names) == 1);
}

TEST_CASE("a lost block hides those behind it until it is written again") {
  cold_index index(1 << 20);
  const text one(1, 4);
  write(index, one.blocks());
  CHECK(index.lost(one.names[1]));
  CHECK_FALSE(index.lost(one.names[1]));
  CHECK(index.known(one.names) == 1);
  CHECK(index.blocks() == 3);
  CHECK(index.bytes() == 3 * small_record);
  const auto steps = write(index, one.blocks());
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].identity == one.names[1]);
  CHECK(index.known(one.names) == 4);
}

TEST_CASE("what is asked for stays, and what nobody asks for goes in time") {
  cold_index index(8 * small_record);
  const text often(1, 2);
  write(index, often.blocks());
  for (int i = 0; i < 4; ++i)
    index.visited(often.names, 2);
  for (std::uint32_t i = 2; i < 10; ++i) {
    const text other(i, 3);
    write(index, other.blocks());
    CHECK(index.known(other.names) == 3);
  }
  CHECK(index.known(often.names) == 2);
  // Not for ever.
  for (std::uint32_t i = 10; i < 100; ++i)
    write(index, text(i, 3).blocks());
  CHECK(index.known(often.names) == 0);
}

TEST_CASE("hits from warmer tiers count") {
  cold_index index(2 * small_record);
  const text often(1, 1);
  auto blocks = often.blocks();
  blocks[0].hits = 5;
  const auto steps = write(index, blocks);
  CHECK(steps[0].worth == Approx(6));
  write(index, text(2, 1).blocks());
  write(index, text(3, 1).blocks());
  CHECK(index.known(often.names) == 1);
}

TEST_CASE("a start restores sizes and order, and drops what has no beginning or no room") {
  const text one(1, 4);
  const text two(2, 3);
  const auto note = [](const text& of, std::size_t at, double worth) {
    cold_codec::note made;
    made.identity = of.names[at];
    made.parent = of.parents[at];
    made.depth = static_cast<std::uint32_t>(at);
    made.bytes = small_record;
    made.worth = worth;
    return made;
  };
  cold_index index(4 * small_record);
  // Text 1 without its second block, in any order; text 2 whole.
  const auto steps = index.restore(
    {note(one, 3, 9), note(one, 0, 9), note(two, 2, 4), note(two, 1, 5), note(one, 2, 9), note(two, 0, 6)});
  CHECK(steps.size() == 2);
  CHECK(index.known(one.names) == 1);
  CHECK(index.known(two.names) == 3);
  CHECK(index.bytes() == 4 * small_record);
  // The index is as old as when text 1 was written: what is new is worth more than the end of text 2.
  const auto evicted = write(index, text(3, 1).blocks());
  REQUIRE(evicted.size() == 2);
  CHECK(evicted[0].what == step::kind::drop);
  CHECK(evicted[0].identity == two.names[2]);
  CHECK(evicted[1].worth == Approx(9));

  cold_index smaller(2 * small_record);
  const auto dropped = smaller.restore({note(one, 0, 9), note(two, 0, 6), note(two, 1, 5), note(two, 2, 4)});
  REQUIRE(dropped.size() == 2);
  CHECK(dropped[0].identity == two.names[2]);
  CHECK(dropped[1].identity == two.names[1]);
  CHECK(smaller.bytes() == 2 * small_record);
}

TEST_CASE("whatever is done, the least worthy end goes, sizes add up, and no block is without its parent") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    const std::uint64_t limit = (3 + random() % 20) * small_record;
    cold_index index(limit);
    plain_index plain;
    std::vector<text> texts;
    for (std::uint32_t i = 0; i < 6; ++i)
      texts.emplace_back(i, 1 + random() % 8);
    for (int action = 0; action < 200; ++action) {
      const auto& one = texts[random() % texts.size()];
      const auto length = 1 + random() % one.names.size();
      if (random() % 3 == 0) {
        const auto there = index.known(one.names);
        const auto read = std::min<std::size_t>(there, length);
        index.visited(one.names, read);
        for (std::size_t i = 0; i < read; ++i) {
          auto& entry = plain.blocks.at(one.names[i]);
          ++entry.hits;
          entry.worth = plain.age + plain_index::gain(entry);
        }
        continue;
      }
      const auto blocks = one.blocks(0, length);
      // Those that are there are looked at again, and none of them may go.
      for (const auto& block : blocks)
        if (const auto place = plain.blocks.find(block.identity); place != plain.blocks.end())
          place->second.worth = plain.age + plain_index::gain(place->second);
      const auto steps = index.plan(blocks);
      for (const auto& each : steps) {
        if (each.what == step::kind::put) {
          const auto& block = blocks[each.block];
          plain_index::entry entry{block.parent, block.depth, 0, 0};
          entry.worth = plain.age + plain_index::gain(entry);
          REQUIRE(each.worth == Approx(entry.worth));
          REQUIRE((block.depth == 0 || plain.blocks.contains(block.parent)));
          REQUIRE(plain.blocks.emplace(block.identity, entry).second);
          continue;
        }
        REQUIRE(plain.blocks.contains(each.identity));
        REQUIRE(plain.is_end(each.identity));
        const auto worth = plain.blocks.at(each.identity).worth;
        for (const auto& block : blocks)
          REQUIRE(block.identity != each.identity);
        for (const auto& [name, entry] : plain.blocks) {
          const bool spared = std::ranges::find(blocks, name, &cold_block::identity) != blocks.end();
          if (!spared && plain.is_end(name))
            REQUIRE(entry.worth >= worth - 1e-9);
        }
        plain.age = std::max(plain.age, worth);
        const auto gone = plain.blocks.at(each.identity);
        plain.blocks.erase(each.identity);
        // Whoever used it used its parent, too.
        if (gone.depth != 0) {
          auto& before = plain.blocks.at(gone.parent);
          before.worth =
            std::max(before.worth, gone.worth - plain_index::gain(gone) + plain_index::gain(before));
        }
      }
      index.confirm();
      REQUIRE(index.blocks() == plain.blocks.size());
      REQUIRE(index.bytes() == plain.blocks.size() * small_record);
      REQUIRE(index.bytes() <= limit);
      for (const auto& each : texts)
        for (const auto& name : each.names)
          REQUIRE(index.has(name) == plain.blocks.contains(name));
    }
  }
}
