// Sequences whose heads keep different positions, against lists of numbers.
#include "kernels/memory/sequence.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <future>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

using namespace godwit;

namespace {

constexpr kv_shape shape{.layers = 2, .kv_heads = 2, .head_dim = 3};
constexpr std::uint32_t lists = 4;

/// What stands at a true position of a list.
kv_element element(position_t position, std::uint32_t list, std::size_t part, std::size_t d) {
  return static_cast<kv_element>(position * 41U + list * 11U + part * 5U + d);
}

std::size_t place(std::size_t part, std::size_t slot, std::size_t d) {
  // K [head_dim, page_tokens], V [page_tokens, head_dim]
  return part == 0 ? d * page_tokens + slot : (page_tokens + slot) * shape.head_dim + d;
}

struct subject {
  sequence real;
  std::vector<std::vector<position_t>> kept = std::vector<std::vector<position_t>>(lists);

  void write(std::uint32_t tokens) {
    REQUIRE(real.reserve(tokens));
    const auto start = real.length();
    for (std::uint32_t list = 0; list < lists; ++list)
      for (std::uint32_t i = 0; i < tokens; ++i) {
        const auto slot = real.kept(list / 2, list % 2) + i;
        auto* page = real.pool().data(real.pages(list / 2, list % 2)[slot / page_tokens]);
        for (std::size_t part = 0; part < 2; ++part)
          for (std::size_t d = 0; d < shape.head_dim; ++d)
            page[place(part, slot % page_tokens, d)] = element(start + i, list, part, d);
        kept[list].push_back(start + i);
      }
    real.advance(tokens);
  }

  void verify() const {
    for (std::uint32_t list = 0; list < lists; ++list) {
      REQUIRE(real.kept(list / 2, list % 2) == kept[list].size());
      if (real.ragged())
        REQUIRE(std::ranges::equal(real.positions(list / 2, list % 2), kept[list]));
      const auto pages = real.pages(list / 2, list % 2);
      for (std::size_t slot = 0; slot < kept[list].size(); ++slot) {
        const auto* page = std::as_const(real.pool()).data(pages[slot / page_tokens]);
        for (std::size_t part = 0; part < 2; ++part)
          for (std::size_t d = 0; d < shape.head_dim; ++d)
            REQUIRE(page[place(part, slot % page_tokens, d)] == element(kept[list][slot], list, part, d));
      }
    }
  }

  std::size_t pages() const {
    std::size_t sum = 0;
    for (const auto& list : kept)
      sum += (list.size() + page_tokens - 1) / page_tokens;
    return sum;
  }
};

subject made(page_pool& pool, std::uint32_t tokens) {
  subject out{sequence(pool)};
  out.write(tokens);
  return out;
}

} // namespace

TEST_CASE("a head keeps what it is told to, in order, and gives the other pages back") {
  const auto pool = page_pool::create(shape, 20).value();
  auto one = made(*pool, 100);
  CHECK(pool->used_pages() == 28);
  // An empty middle, pages' edges, a single position of the last page.
  const std::vector<position_t> wanted{0, 1, 15, 16, 17, 31, 32, 90, 95, 96, 99};
  CHECK(one.real.keep(1, 0, wanted) == 6U);
  one.kept[2] = wanted;
  one.verify();
  CHECK(pool->used_pages() == 22);
  CHECK(one.real.length() == 100);
  CHECK(one.real.blocks().empty());
  const std::vector<position_t> single{95};
  CHECK(one.real.keep(1, 0, single) == 0U);
  one.kept[2] = single;
  CHECK(one.real.keep(0, 1, {}) == 7U);
  one.kept[1].clear();
  one.verify();
  // What comes later stands behind what was kept, at its true position.
  one.write(30);
  one.verify();
  CHECK(one.kept[1].front() == 100);
  CHECK(pool->used_pages() == one.pages());
}

TEST_CASE("positions that are not there, or not in order, are refused and nothing changes") {
  const auto pool = page_pool::create(shape, 20).value();
  auto one = made(*pool, 40);
  const std::vector<position_t> beyond{3, 40};
  CHECK(one.real.keep(0, 0, beyond).error().code == errc::invalid_argument);
  const std::vector<position_t> twice{3, 3};
  CHECK_FALSE(one.real.keep(0, 0, twice));
  CHECK_FALSE(one.real.ragged());
  const std::vector<position_t> some{3, 7};
  REQUIRE(one.real.keep(0, 0, some));
  const std::vector<position_t> gone{3, 5};
  CHECK(one.real.keep(0, 0, gone).error().message.find('5') != std::string::npos);
  one.kept[0] = some;
  one.verify();
}

TEST_CASE("others that share the pages do not notice, nor a cache that holds the blocks") {
  const auto pool = page_pool::create(shape, 20).value();
  auto one = made(*pool, 40);
  subject twin{one.real.fork(), one.kept};
  const std::vector<position_t> some{1, 2, 20, 39};
  // Three pages of the list stay with the other one.
  CHECK(one.real.keep(0, 1, some) == 0U);
  one.kept[1] = some;
  one.verify();
  twin.verify();
  CHECK(pool->used_pages() == 13);
  one.write(3);
  twin.write(9);
  one.verify();
  twin.verify();
}

TEST_CASE("with no page to take a shared one's place nothing changes") {
  const auto pool = page_pool::create(shape, 3).value();
  auto one = made(*pool, 48);
  subject twin{one.real.fork(), one.kept};
  const std::vector<position_t> some{1, 2};
  CHECK(one.real.keep(0, 1, some).error().code == errc::resource_exhausted);
  CHECK_FALSE(one.real.ragged());
  one.verify();
  // The first pages as they are need no new one.
  std::vector<position_t> first(32);
  std::iota(first.begin(), first.end(), 0U);
  CHECK(one.real.keep(0, 1, first) == 0U);
  one.kept[1] = first;
  one.verify();
  twin.verify();
}

TEST_CASE("single pages fill up blocks that have some free, and a block is whole again with its last") {
  const auto pool = page_pool::create(shape, 2).value();
  std::vector<page_id> pages;
  for (int i = 0; i < 8; ++i)
    pages.push_back(pool->allocate_page().value());
  CHECK_FALSE(pool->allocate_page());
  CHECK(pool->free_blocks() == 0);
  std::ranges::sort(pages);
  for (page_id i = 0; i < 8; ++i)
    CHECK(pages[i] == i);
  pool->release_page(5);
  CHECK_FALSE(pool->allocate_block());
  CHECK(pool->allocate_page() == 5U);
  for (const page_id page : {4U, 5U, 6U, 7U})
    pool->release_page(page);
  CHECK(pool->free_blocks() == 1);
  CHECK(pool->allocate_block() == 1U);
  CHECK(pool->used_pages() == 8);
}

TEST_CASE("threads that take single pages and whole blocks of one pool never share one, and leave it empty") {
  const auto pool = page_pool::create(shape, 24).value();
  const auto live = [&](std::uint32_t seed) {
    std::mt19937 dice(seed);
    std::vector<page_id> pages;
    std::vector<block_id> blocks;
    // Whoever holds a page writes its own number there; another owner would write another one.
    const auto mark = [&](page_id page) { *pool->data(page) = static_cast<kv_element>(seed); };
    const auto mine = [&](page_id page) { return *std::as_const(*pool).data(page) == seed; };
    bool good = true;
    for (int round = 0; round < 2000; ++round)
      switch (dice() % 4) {
      case 0:
        if (const auto page = pool->allocate_page()) {
          mark(*page);
          pages.push_back(*page);
        }
        break;
      case 1:
        if (const auto block = pool->allocate_block()) {
          for (page_id page = *block * lists; page < (*block + 1) * lists; ++page)
            mark(page);
          blocks.push_back(*block);
        }
        break;
      case 2:
        for (const auto page : pages)
          good = good && mine(page);
        pool->release_pages(pages);
        pages.clear();
        break;
      default:
        // As a sequence does that becomes ragged.
        for (const auto block : blocks) {
          for (page_id page = block * lists; page < (block + 1) * lists; ++page) {
            good = good && mine(page);
            pool->retain_page(page);
            pages.push_back(page);
          }
          pool->release_block(block);
        }
        blocks.clear();
      }
    pool->release_pages(pages);
    pool->release_blocks(blocks);
    return good;
  };
  std::vector<std::future<bool>> threads;
  for (std::uint32_t seed = 1; seed <= 4; ++seed)
    threads.push_back(std::async(std::launch::async, live, seed));
  for (auto& thread : threads)
    CHECK(thread.get());
  CHECK(pool->free_blocks() == 24);
  CHECK(pool->used_pages() == 0);
  CHECK(pool->loose_pages() == 0);
}

TEST_CASE("random histories of ragged sequences keep contents and pages, and leave nothing behind") {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    std::mt19937 dice(seed);
    const auto pool = page_pool::create(shape, 64).value();
    {
      std::vector<subject> all;
      for (int round = 0; round < 150; ++round) {
        if (all.empty() || dice() % 8 == 0)
          all.push_back({sequence(*pool)});
        auto& one = all[dice() % all.size()];
        switch (dice() % 6) {
        case 0:
        case 1:
          if (one.real.blocks_needed(20) + 8 < pool->free_blocks())
            one.write(static_cast<std::uint32_t>(1 + dice() % 20));
          break;
        case 2:
        case 3: {
          const auto list = static_cast<std::uint32_t>(dice() % lists);
          std::vector<position_t> wanted;
          for (const auto position : one.kept[list])
            if (dice() % 3 != 0)
              wanted.push_back(position);
          if (one.real.keep(list / 2, list % 2, wanted))
            one.kept[list] = wanted;
          break;
        }
        case 4: {
          subject twin{one.real.fork(), one.kept};
          all.push_back(std::move(twin));
          break;
        }
        default: {
          const auto length = static_cast<position_t>(dice() % (one.real.length() + 1));
          one.real.truncate(length);
          for (auto& list : one.kept)
            std::erase_if(list, [&](position_t p) { return p >= length; });
        }
        }
        if (all.size() > 5)
          all.erase(all.begin());
        for (const auto& each : all)
          each.verify();
      }
    }
    REQUIRE(pool->free_blocks() == 64);
    REQUIRE(pool->used_pages() == 0);
  }
}

TEST_CASE("what is kept moves with its bits and its scales, in pages of every type") {
  const auto type = GENERATE(kv_type::f16, kv_type::f32, kv_type::bf16, kv_type::int8);
  const std::size_t bytes = type == kv_type::int8 ? 1 : type == kv_type::f32 ? 4 : 2;
  constexpr std::uint32_t dim = 4;
  const kv_shape typed{.layers = 1, .kv_heads = 1, .head_dim = dim, .type = type};
  const auto pool = page_pool::create(typed, 16).value();
  // Every byte of a position's key and value, and of its two scales, by its number.
  const auto each_byte = [&](sequence& of, std::size_t slot, position_t position, auto&& use) {
    auto* const page = reinterpret_cast<std::uint8_t*>(pool->data(of.pages(0, 0)[slot / page_tokens]));
    const auto at = slot % page_tokens;
    std::uint8_t number = 0;
    const auto visit = [&](std::size_t start, std::size_t size) {
      for (std::size_t i = 0; i < size; ++i)
        use(page[start + i], static_cast<std::uint8_t>(position * 29U + ++number));
    };
    for (std::size_t d = 0; d < dim; ++d)
      visit((d * page_tokens + at) * bytes, bytes);
    visit((page_tokens + at) * dim * bytes, dim * bytes);
    if (type == kv_type::int8) {
      visit(2 * page_tokens * dim + 2 * at, 2);
      visit(2 * page_tokens * dim + 2 * (page_tokens + at), 2);
    }
  };
  sequence one(*pool);
  REQUIRE(one.reserve(60));
  for (position_t p = 0; p < 60; ++p)
    each_byte(one, p, p, [](std::uint8_t& byte, std::uint8_t value) { byte = value; });
  one.advance(60);
  auto other = one.fork();
  const auto verify = [&](sequence& of, std::span<const position_t> kept) {
    for (std::size_t slot = 0; slot < kept.size(); ++slot)
      each_byte(of, slot, kept[slot], [](std::uint8_t& byte, std::uint8_t value) { REQUIRE(byte == value); });
  };
  std::vector<position_t> all(60);
  std::iota(all.begin(), all.end(), 0U);
  const std::vector<position_t> wanted{0, 1, 14, 15, 16, 31, 33, 34, 35, 36, 40, 41, 42, 50, 51, 52, 58, 59};
  REQUIRE(one.keep(0, 0, wanted));
  verify(one, wanted);
  verify(other, all);
  // A shared tail is copied as it is.
  other.truncate(55);
  auto third = other.fork();
  REQUIRE(third.reserve(1));
  verify(third, std::span(all).first(55));
}
