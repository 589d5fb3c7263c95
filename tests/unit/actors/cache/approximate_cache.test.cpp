#include "actors/cache/approximate_cache.hpp"

#include "actors/cache/prefix_cache.hpp"

#include <catch2/catch.hpp>

#include <numeric>
#include <string>
#include <vector>

using namespace godwit;

namespace {

constexpr kv_shape shape{.layers = 1, .kv_heads = 2, .head_dim = 2};

block_hasher hasher_of(const std::string& profile) {
  cache_scope scope;
  scope.shape = shape;
  scope.profile = profile;
  return {identity_key::derive({}), scope};
}

std::vector<token_id> text(std::size_t tokens, token_id salt = 0) {
  std::vector<token_id> made(tokens);
  std::iota(made.begin(), made.end(), 1000 * salt);
  return made;
}

/// The value of a position stands in the first element of its value vector.
kv_element& cell(sequence& of, std::uint32_t head, std::uint32_t slot) {
  auto* page = of.pool().data(of.pages(0, head)[slot / page_tokens]);
  return page[(page_tokens + slot % page_tokens) * shape.head_dim];
}

void append(sequence& to, std::uint32_t tokens, kv_element mark) {
  REQUIRE(to.reserve(tokens));
  for (std::uint32_t head = 0; head < shape.kv_heads; ++head)
    for (std::uint32_t i = 0; i < tokens; ++i)
      cell(to, head, to.kept(0, head) + i) = static_cast<kv_element>(mark + to.length() + i);
  to.advance(tokens);
}

/// 32 positions, of which the second head keeps three.
sequence cut(page_pool& pool, kv_element mark) {
  sequence made(pool);
  append(made, 32, mark);
  const std::vector<position_t> kept{3, 17, 31};
  REQUIRE(made.keep(0, 1, kept));
  return made;
}

struct fixture {
  explicit fixture(approximate_cache_options options = {.pages = 100})
    : cache(std::make_unique<approximate_cache>(pool, hasher_of("window-3"), options)) {}

  std::shared_ptr<page_pool> pool = page_pool::create(shape, 32).value();
  std::unique_ptr<approximate_cache> cache;
};

} // namespace

TEST_CASE("a state is found after the longest prefix that is known, with what its heads keep") {
  fixture at;
  auto one = cut(*at.pool, 100);
  REQUIRE(at.cache->insert("t", text(32), one));
  append(one, 16, 100);
  REQUIRE(at.cache->insert("t", text(48), one));
  CHECK_FALSE(at.cache->find("t", text(31)));
  CHECK_FALSE(at.cache->find("t", text(48, 1)));
  CHECK_FALSE(at.cache->find("u", text(48)));
  CHECK(at.cache->find("t", text(47))->length() == 32);
  auto found = at.cache->find("t", text(90));
  REQUIRE(found);
  CHECK(found->length() == 48);
  CHECK(found->kept(0, 0) == 48);
  const auto kept = found->positions(0, 1);
  CHECK(kept.size() == 19);
  CHECK((kept[2] == 31 && kept[3] == 32));
  CHECK(cell(*found, 1, 2) == 131);
  CHECK(cell(*found, 1, 3) == 132);
}

TEST_CASE("what its owner does later does not change a state, nor what a finder does") {
  fixture at;
  auto one = cut(*at.pool, 100);
  REQUIRE(at.cache->insert("t", text(32), one));
  const std::vector<position_t> kept{17};
  REQUIRE(one.keep(0, 1, kept));
  append(one, 5, 500);
  auto first = at.cache->find("t", text(32));
  append(*first, 5, 700);
  auto second = at.cache->find("t", text(32));
  CHECK(second->kept(0, 1) == 3);
  CHECK(cell(*second, 1, 0) == 103);
  CHECK(cell(*second, 1, 1) == 117);
  CHECK(cell(*first, 1, 3) == 732);
  CHECK(cell(one, 1, 1) == 532);
}

TEST_CASE("no look-up of exact blocks finds a state, nor one under another profile") {
  fixture at;
  const auto one = cut(*at.pool, 100);
  REQUIRE(at.cache->insert("t", text(32), one));
  prefix_cache exact(at.pool, hasher_of(""), {.budget = 16});
  CHECK(exact.find("t", text(32)).empty());
  // There are not even blocks that it could be told of.
  CHECK(one.blocks().empty());
  approximate_cache other(at.pool, hasher_of("window-4"), {.pages = 100});
  CHECK_FALSE(other.find("t", text(32)));
  // And names of equal text never meet.
  const auto tokens = text(16);
  const auto name = [&](const std::string& profile) {
    const auto hasher = hasher_of(profile);
    return hasher.next(hasher.root("t"), tokens);
  };
  CHECK_FALSE(name("") == name("window-3"));
  CHECK_FALSE(name("window-3") == name("window-4"));
}

TEST_CASE("states after part of a block, of another length or beyond the budget are refused") {
  fixture at({.pages = 3});
  auto one = cut(*at.pool, 100);
  CHECK(at.cache->insert("t", text(48), one).error().code == errc::invalid_argument);
  CHECK(at.cache->insert("t", {}, sequence(*at.pool)).error().code == errc::invalid_argument);
  CHECK(at.cache->insert("t", text(32), one));
  append(one, 16, 100);
  const auto refused = at.cache->insert("t", text(48), one);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::resource_exhausted);
  CHECK(refused.error().message.find('5') != std::string::npos);
  CHECK(refused.error().message.find('3') != std::string::npos);
  CHECK(at.cache->size() == 1);
}

TEST_CASE("the least recently used state goes first, and its pages come back") {
  fixture at({.pages = 9, .entries = 3});
  for (token_id salt = 1; salt <= 3; ++salt)
    REQUIRE(at.cache->insert("t", text(32, salt), cut(*at.pool, 100)));
  CHECK(at.pool->used_pages() == 9);
  CHECK(at.cache->pages() == 9);
  CHECK(at.cache->find("t", text(32, 1)));
  REQUIRE(at.cache->insert("t", text(32, 4), cut(*at.pool, 100)));
  CHECK(at.pool->used_pages() == 9);
  CHECK_FALSE(at.cache->find("t", text(32, 2)));
  CHECK(at.cache->find("t", text(32, 1)));
  // The same text again takes the place of what was there.
  REQUIRE(at.cache->insert("t", text(32, 4), cut(*at.pool, 900)));
  CHECK(at.cache->size() == 3);
  {
    auto found = at.cache->find("t", text(32, 4));
    CHECK(cell(*found, 1, 0) == 903);
  }
  CHECK(at.cache->evict(4) == 6);
  CHECK(at.cache->size() == 1);
  CHECK(at.cache->find("t", text(32, 4)));
  CHECK(at.cache->evict(100) == 3);
  CHECK(at.pool->free_blocks() == 32);
}
