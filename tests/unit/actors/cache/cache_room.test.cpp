// What those ask of a cache who hand prompts over.

#include "actors/cache/tiered_cache.hpp"

#include <catch2/catch.hpp>

#include <numeric>

using namespace godwit;

namespace {

std::vector<token_id> text(std::size_t blocks) {
  std::vector<token_id> tokens(blocks * page_tokens);
  std::iota(tokens.begin(), tokens.end(), 1);
  return tokens;
}

struct fixture {
  std::shared_ptr<page_pool> pool = std::move(*page_pool::create({1, 1, 8, kv_type::f16}, 8));
  std::shared_ptr<engine_counters> counters = std::make_shared<engine_counters>();
  block_hasher hasher{identity_key::random(), {}};
  std::unique_ptr<tiered_cache> cache =
    std::move(*tiered_cache::create(pool, hasher, {.budget = 8, .pin_quota = 8}, {}, counters,
      [](tiered_cache::task what, std::chrono::milliseconds) { what(); }));

  std::vector<block_id> insert(std::size_t count) {
    std::vector<block_id> blocks;
    for (std::size_t i = 0; i < count; ++i)
      blocks.push_back(*pool->allocate_block());
    cache->device().insert("t", text(count), blocks);
    return blocks;
  }
};

} // namespace

TEST_CASE_METHOD(fixture, "blocks that are held are those of the known prefix, and stay") {
  const auto blocks = insert(3);
  CHECK(cache->hold("t", text(5)) == blocks);
  CHECK(cache->device().evict_unpinned(8) == 0);
  CHECK(pool->free_blocks() == 5);
  pool->release_blocks(blocks);
  CHECK(cache->hold("u", text(3)).empty());
  CHECK(cache->device().evict_unpinned(8) == 3);
  CHECK(cache->hold("t", text(3)).empty());
  CHECK(pool->free_blocks() == 8);
}

TEST_CASE_METHOD(fixture, "who holds blocks has not asked for them: they are given up as if nobody had") {
  insert(1);
  const block_hasher& names = hasher;
  block_identity name;
  names.chain(names.root("t"), text(1), {&name, 1});
  for (int i = 0; i < 3; ++i)
    pool->release_blocks(cache->hold("t", text(1)));
  REQUIRE(cache->device().look(name) != nullptr);
  CHECK(cache->device().look(name)->hits == 0);
  // A request's look-up counts.
  pool->release_blocks(cache->find(1, "t", text(1), {}).blocks);
  CHECK(cache->device().look(name)->hits == 1);
}
