#include "actors/cache/prefix_cache.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <string>

using namespace godwit;

namespace {

std::vector<token_id> text(std::size_t blocks, token_id salt = 0) {
  std::vector<token_id> tokens;
  for (std::size_t i = 0; i < blocks * page_tokens; ++i)
    tokens.push_back(static_cast<token_id>(i) + 1000 * salt);
  return tokens;
}

struct cached_pool {
  explicit cached_pool(std::uint32_t blocks = 16, std::uint32_t budget = 16)
    : pool(std::move(*page_pool::create({1, 1, 8, kv_type::f16}, blocks))),
      cache(std::make_unique<prefix_cache>(pool, block_hasher(identity_key::derive({}), {}),
        prefix_cache_options{.budget = budget, .pin_quota = 6, .most_pins = 3})) {}

  std::vector<block_id> allocate(std::size_t count) {
    std::vector<block_id> blocks;
    for (std::size_t i = 0; i < count; ++i)
      blocks.push_back(pool->allocate_block().value());
    return blocks;
  }

  void release(const std::vector<block_id>& blocks) {
    for (const auto block : blocks)
      pool->release_block(block);
  }

  std::shared_ptr<page_pool> pool;
  std::unique_ptr<prefix_cache> cache;
};

} // namespace

TEST_CASE("the longest known prefix is found, in whole blocks") {
  cached_pool at;
  const auto blocks = at.allocate(4);
  const auto whole = text(4);
  at.cache->insert("t", whole, blocks);
  CHECK(at.cache->find("t", text(4)) == blocks);
  CHECK(at.cache->find("t", std::span(whole).first(63)) == std::vector(blocks.begin(), blocks.begin() + 3));
  auto other = text(4);
  other[33] = 7777;
  CHECK(at.cache->find("t", other) == std::vector(blocks.begin(), blocks.begin() + 2));
  CHECK(at.cache->find("t", text(6)) == blocks);
  CHECK(at.cache->find("t", std::span(whole).subspan(page_tokens)).empty());
  CHECK(at.cache->find("u", text(4)).empty());
}

TEST_CASE("whoever finds a block holds a reference of it") {
  cached_pool at;
  at.cache->insert("t", text(1), at.allocate(1));
  CHECK(at.pool->exclusive(0));
  const auto found = at.cache->find("t", text(1));
  CHECK_FALSE(at.pool->exclusive(0));
  at.release(found);
  at.cache.reset();
  CHECK(at.pool->free_blocks() == 16);
}

TEST_CASE("equal blocks that come again are not kept twice") {
  cached_pool at;
  const auto first = at.allocate(2);
  at.cache->insert("t", text(2), first);
  at.cache->insert("t", text(3), at.allocate(3));
  CHECK(at.cache->size() == 3);
  CHECK(at.pool->free_blocks() == 13);
  const auto found = at.cache->find("t", text(3));
  CHECK(std::vector(found.begin(), found.begin() + 2) == first);
}

TEST_CASE("the least recently used goes first, and the end of a chain before its beginning") {
  // How much of two texts is left after so many evictions; the first one's beginning was used last.
  const std::size_t left[][2] = {{3, 3}, {2, 3}, {2, 2}, {2, 1}, {2, 0}, {1, 0}, {0, 0}};
  for (std::uint32_t evictions = 0; evictions <= 6; ++evictions) {
    cached_pool at;
    at.cache->insert("t", text(3, 1), at.allocate(3));
    at.cache->insert("t", text(3, 2), at.allocate(3));
    at.release(at.cache->find("t", text(2, 1)));
    CHECK(at.cache->evict(evictions) == evictions);
    CHECK(at.cache->find("t", text(3, 1)).size() == left[evictions][0]);
    CHECK(at.cache->find("t", text(3, 2)).size() == left[evictions][1]);
    CHECK(at.cache->evictions() == evictions);
  }
}

TEST_CASE("a block that somebody holds is not given up, nor one before it") {
  cached_pool at;
  const auto blocks = at.allocate(3);
  for (const auto block : blocks)
    at.pool->retain_block(block);
  at.cache->insert("t", text(3), blocks);
  CHECK(at.cache->evict(3) == 0);
  at.pool->release_block(blocks[2]);
  CHECK(at.cache->evict(3) == 1);
  CHECK(at.cache->find("t", text(3)).size() == 2);
}

TEST_CASE("the budget is kept: unused blocks make room, and without any the rest is not kept") {
  cached_pool at(16, 4);
  at.cache->insert("t", text(3, 1), at.allocate(3));
  at.cache->insert("t", text(3, 2), at.allocate(3));
  CHECK(at.cache->size() == 4);
  at.release(at.cache->find("t", text(3, 2)));
  CHECK(at.cache->find("t", text(3, 1)).size() == 1);

  cached_pool small(16, 2);
  small.cache->insert("t", text(5), small.allocate(5));
  CHECK(small.cache->size() == 2);
  CHECK(small.pool->free_blocks() == 14);

  cached_pool none(16, 0);
  none.cache->insert("t", text(5), none.allocate(5));
  CHECK(none.pool->free_blocks() == 16);
}

TEST_CASE("random lives leave no block behind and never find a wrong one") {
  std::mt19937 dice(1);
  cached_pool at(64, 40);
  // What each block of the pool holds, by the text that was put there.
  std::map<block_id, std::vector<token_id>> contents;
  std::vector<std::vector<block_id>> held;
  for (int round = 0; round < 20000; ++round) {
    auto tokens = text(1 + dice() % 6, static_cast<token_id>(dice() % 4));
    if (dice() % 2 == 0)
      tokens[dice() % tokens.size()] = 5;
    auto blocks = at.cache->find("t", tokens);
    for (std::size_t i = 0; i < blocks.size(); ++i)
      REQUIRE(
        contents[blocks[i]]
        == std::vector(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>((i + 1) * page_tokens)));
    while (blocks.size() < tokens.size() / page_tokens) {
      auto block = at.pool->allocate_block();
      if (!block) {
        if (at.cache->evict(1) == 1)
          continue;
        break;
      }
      blocks.push_back(*block);
      contents[*block] = std::vector(
        tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(blocks.size() * page_tokens));
    }
    for (const auto block : blocks)
      at.pool->retain_block(block);
    at.cache->insert("t", tokens, blocks);
    held.push_back(std::move(blocks));
    REQUIRE(at.cache->size() <= 40);
    while (held.size() > dice() % 5) {
      at.release(held.front());
      held.erase(held.begin());
    }
  }
  for (const auto& blocks : held)
    at.release(blocks);
  CHECK(at.cache->size() + at.pool->free_blocks() == 64);
  at.cache->evict(64);
  CHECK(at.cache->size() == 0);
  CHECK(at.pool->free_blocks() == 64);
}

TEST_CASE("blocks that follow a known one are found behind it, without it they are not kept") {
  cached_pool at;
  const auto whole = text(3);
  const block_hasher hasher(identity_key::derive({}), {});
  const auto first = hasher.next(hasher.root("t"), std::span(whole).first(16));
  std::vector<block_identity> rest(2);
  hasher.chain(first, std::span(whole).subspan(16), rest);
  at.cache->extend(first, rest, at.allocate(2));
  CHECK(at.cache->size() == 0);
  CHECK(at.pool->free_blocks() == 16);
  at.cache->insert("t", std::span(whole).first(16), at.allocate(1));
  const auto blocks = at.allocate(2);
  at.cache->extend(first, rest, blocks);
  const auto found = at.cache->find("t", whole);
  REQUIRE(found.size() == 3);
  CHECK(std::vector(found.begin() + 1, found.end()) == blocks);
  // By names as by tokens.
  rest.insert(rest.begin(), first);
  CHECK(at.cache->find(rest) == found);
  rest.insert(rest.begin() + 2, {7, 7});
  CHECK(at.cache->find(rest).size() == 2);
}

TEST_CASE("what was asked for often outlives what was not, though it was used before") {
  cached_pool at(8, 4);
  at.cache->insert("t", text(2, 1), at.allocate(2));
  for (int i = 0; i < 3; ++i)
    at.release(at.cache->find("t", text(2, 1)));
  for (token_id salt = 2; salt < 5; ++salt)
    at.cache->insert("t", text(2, salt), at.allocate(2));
  CHECK(at.cache->find("t", text(2, 1)).size() == 2);
}

TEST_CASE("a pinned prefix stays until its time is over or the pin is taken back") {
  using clock = prefix_cache::clock;
  cached_pool at(16, 4);
  at.cache->insert("t", text(3, 1), at.allocate(3));
  const auto now = clock::time_point{};
  const auto whole = text(3, 1);
  const auto pin = at.cache->pin("t", std::span(whole).first(40), now + std::chrono::seconds(10));
  REQUIRE(pin);
  CHECK(pin->blocks == 2);
  CHECK(at.cache->pinned_blocks() == 2);
  at.cache->insert("t", text(4, 2), at.allocate(4));
  CHECK(at.cache->find("t", text(3, 1)).size() == 2);
  at.release({0, 1});
  at.cache->expire(now + std::chrono::seconds(9));
  CHECK(at.cache->pins() == 1);
  CHECK_FALSE(at.cache->unpin("u", pin->id));
  SECTION("by time") {
    at.cache->expire(now + std::chrono::seconds(10));
  }
  SECTION("by hand") {
    CHECK(at.cache->unpin("t", pin->id));
    CHECK_FALSE(at.cache->unpin("t", pin->id));
  }
  CHECK(at.cache->pins() == 0);
  CHECK(at.cache->pinned_blocks() == 0);
}

TEST_CASE("a tenant pins no more blocks and has no more pins than its quota, and hears both numbers") {
  cached_pool at;
  const auto later = prefix_cache::clock::time_point::max();
  at.cache->insert("t", text(8, 1), at.allocate(8));
  at.cache->insert("u", text(4, 1), at.allocate(4));
  const auto whole = text(8, 1);
  CHECK(at.cache->pin("t", text(1, 3), later).error().code == errc::not_found);
  const auto refused = at.cache->pin("t", whole, later);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::resource_exhausted);
  CHECK(refused.error().message.find('8') != std::string::npos);
  CHECK(refused.error().message.find('6') != std::string::npos);
  CHECK(at.cache->pin("t", std::span(whole).first(5 * page_tokens), later));
  // Blocks that are pinned already cost nothing; another tenant has its own quota.
  CHECK(at.cache->pin("t", std::span(whole).first(6 * page_tokens), later));
  CHECK_FALSE(at.cache->pin("t", std::span(whole).first(7 * page_tokens), later));
  CHECK(at.cache->pin("t", std::span(whole).first(page_tokens), later));
  CHECK_FALSE(at.cache->pin("t", std::span(whole).first(page_tokens), later));
  CHECK(at.cache->pin("u", whole, later)->blocks == 4);
  CHECK(at.cache->pinned_blocks() == 10);
}

TEST_CASE("work that cannot go on otherwise ends pins, the one that ends soonest first") {
  cached_pool at;
  const auto now = prefix_cache::clock::time_point{};
  at.cache->insert("t", text(3, 1), at.allocate(3));
  at.cache->insert("t", text(3, 2), at.allocate(3));
  REQUIRE(at.cache->pin("t", text(3, 1), now + std::chrono::seconds(20)));
  REQUIRE(at.cache->pin("t", text(3, 2), now + std::chrono::seconds(10)));
  CHECK(at.cache->evict(2) == 2);
  CHECK(at.cache->pins() == 1);
  CHECK(at.cache->find("t", text(3, 2)).size() == 1);
  CHECK(at.cache->find("t", text(3, 1)).size() == 3);
}

TEST_CASE("long prefixes are found however their blocks were told: at once, in turns, or in any order") {
  const auto how = GENERATE(0, 1, 2);
  cached_pool at(400, 400);
  const block_hasher hasher(identity_key::derive({}), {});
  std::mt19937 dice(7);
  constexpr std::size_t texts = 3;
  constexpr std::size_t length = 100;
  std::vector<std::vector<block_id>> told(texts);
  std::vector<block_identity> tips(texts, hasher.root("t"));
  while (std::any_of(told.begin(), told.end(), [](const auto& blocks) { return blocks.size() < length; })) {
    const auto total = told[0].size() + told[1].size() + told[2].size();
    const auto which = how == 0 ? total / length : how == 1 ? total % texts : dice() % texts;
    if (told[which].size() == length)
      continue;
    const auto whole = text(length, static_cast<token_id>(which));
    const auto part = std::span(whole).subspan(told[which].size() * page_tokens, page_tokens);
    const auto block = at.allocate(1);
    const std::vector names{hasher.next(tips[which], part)};
    if (told[which].empty())
      at.cache->insert(names, block);
    else
      at.cache->extend(tips[which], names, block);
    tips[which] = names[0];
    told[which].push_back(block[0]);
  }
  for (std::size_t which = 0; which < texts; ++which) {
    const auto whole = text(length, static_cast<token_id>(which));
    CHECK(at.cache->find("t", whole) == told[which]);
    for (const std::size_t known : {1U, 31U, 32U, 33U, 64U, 99U}) {
      auto strays = whole;
      strays[known * page_tokens + 3] = 7777777;
      CHECK(at.cache->find("t", strays)
            == std::vector(told[which].begin(), told[which].begin() + static_cast<std::ptrdiff_t>(known)));
    }
  }
}
