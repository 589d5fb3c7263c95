#include "kernels/memory/page_pool.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

using namespace godwit;

namespace {

constexpr kv_shape small{.layers = 3, .kv_heads = 2, .head_dim = 8};

std::unique_ptr<page_pool> pool_of(std::uint32_t blocks, const kv_shape& shape = small) {
  return page_pool::create(shape, blocks).value();
}

} // namespace

TEST_CASE("a pool hands out each block once and then says that it is full") {
  const auto pool = pool_of(5);
  CHECK(pool->capacity_blocks() == 5);
  CHECK(pool->free_blocks() == 5);
  std::set<block_id> seen;
  for (int i = 0; i < 5; ++i)
    seen.insert(pool->allocate_block().value());
  CHECK(seen == std::set<block_id>{0, 1, 2, 3, 4});
  CHECK(pool->free_blocks() == 0);
  CHECK(pool->used_pages() == 30);
  const auto more = pool->allocate_block();
  REQUIRE_FALSE(more.has_value());
  CHECK(more.error().code == errc::resource_exhausted);
}

TEST_CASE("pages are disjoint, aligned to 64 bytes and found from the base") {
  const auto pool = pool_of(4, {.layers = 2, .kv_heads = 3, .head_dim = 5});
  // 16 positions of K and of V with 5 elements of 2 bytes.
  CHECK(pool->shape().page_bytes() == 320);
  for (page_id page = 0; page < 24; ++page) {
    CHECK(reinterpret_cast<std::uintptr_t>(pool->data(page)) % 64 == 0);
    CHECK(pool->data(page) == pool->base() + page * pool->shape().page_elements());
    for (std::size_t i = 0; i < pool->shape().page_elements(); ++i)
      pool->data(page)[i] = static_cast<kv_element>(page);
  }
  for (page_id page = 0; page < 24; ++page) {
    CHECK(pool->data(page)[0] == page);
    CHECK(pool->data(page)[159] == page);
  }
  CHECK(pool->page(3, 1, 2) == 23);
  CHECK(pool->page(1, 0, 1) == 7);
}

TEST_CASE("a page of bytes takes half of one of halves, and a line for its scales") {
  const auto bytes = [](kv_type type, std::uint32_t dim) { return kv_shape{1, 1, dim, type}.page_bytes(); };
  CHECK(bytes(kv_type::f32, 64) == 8192);
  CHECK(bytes(kv_type::f16, 64) == 4096);
  CHECK(bytes(kv_type::bf16, 64) == 4096);
  CHECK(bytes(kv_type::int8, 64) == 2048 + 64);
  CHECK(bytes(kv_type::int8, 128) == 4096 + 64);
  // Whole lines.
  CHECK(bytes(kv_type::int8, 5) == 256);
  for (const auto* name : {"fp16", "fp32", "bf16", "int8"})
    CHECK(to_string(kv_type_named(name).value()) == name);
  CHECK_FALSE(kv_type_named("auto"));
}

TEST_CASE("a block is free when its last reference goes") {
  const auto pool = pool_of(2);
  const auto block = pool->allocate_block().value();
  pool->retain_block(block);
  CHECK_FALSE(pool->exclusive(block));
  CHECK(pool->references(pool->page(block, 2, 1)) == 2);
  pool->release_block(block);
  CHECK(pool->exclusive(block));
  CHECK(pool->free_blocks() == 1);
  pool->release_block(block);
  CHECK(pool->free_blocks() == 2);
  CHECK(pool->used_pages() == 0);
  CHECK(pool->references(pool->page(block, 0, 0)) == 0);
}

TEST_CASE("the block freed last goes out first") {
  const auto pool = pool_of(3);
  const auto first = pool->allocate_block().value();
  const auto second = pool->allocate_block().value();
  pool->release_block(first);
  CHECK(pool->allocate_block().value() == first);
  pool->release_block(second);
  CHECK(pool->allocate_block().value() == second);
}

TEST_CASE("a block whose pages go one by one is whole again with the last") {
  const auto pool = pool_of(1);
  const auto block = pool->allocate_block().value();
  for (page_id page = 0; page < 6; ++page) {
    CHECK(pool->free_blocks() == 0);
    CHECK_FALSE(pool->allocate_block().has_value());
    pool->release_page(page);
    CHECK(pool->references(page) == 0);
    CHECK(pool->used_pages() == 5 - page);
  }
  CHECK(pool->free_blocks() == 1);
  CHECK(pool->allocate_block().value() == block);
  for (page_id page = 0; page < 6; ++page)
    CHECK(pool->references(page) == 1);
}

TEST_CASE("one head can give up a page that its neighbours and other owners keep") {
  const auto pool = pool_of(1);
  const auto block = pool->allocate_block().value();
  pool->retain_block(block);
  // One of the two owners gives up page 4, then all others of its pages.
  pool->release_page(4);
  CHECK(pool->references(4) == 1);
  CHECK(pool->references(3) == 2);
  CHECK_FALSE(pool->exclusive(block));
  for (const page_id page : {0U, 1U, 2U, 3U, 5U})
    pool->release_page(page);
  CHECK(pool->exclusive(block));
  CHECK(pool->used_pages() == 6);
  pool->release_block(block);
  CHECK(pool->free_blocks() == 1);
  CHECK(pool->used_pages() == 0);
}

TEST_CASE("a page held beyond its block keeps only itself") {
  const auto pool = pool_of(1);
  const auto block = pool->allocate_block().value();
  pool->retain_page(2);
  CHECK(pool->references(2) == 2);
  CHECK_FALSE(pool->exclusive(block));
  pool->release_block(block);
  CHECK(pool->used_pages() == 1);
  CHECK(pool->references(2) == 1);
  CHECK(pool->references(1) == 0);
  CHECK(pool->exclusive(block));
  CHECK(pool->free_blocks() == 0);
  pool->release_page(2);
  CHECK(pool->free_blocks() == 1);
  // The next owner starts from one reference on every page.
  CHECK(pool->allocate_block().value() == block);
  for (page_id page = 0; page < 6; ++page)
    CHECK(pool->references(page) == 1);
}

TEST_CASE("shapes that are empty or cannot be addressed are refused") {
  const auto refused = [](const kv_shape& shape, std::uint32_t blocks) {
    const auto made = page_pool::create(shape, blocks);
    return !made && made.error().code == errc::invalid_argument;
  };
  CHECK(refused({.layers = 0, .kv_heads = 1, .head_dim = 1}, 1));
  CHECK(refused({.layers = 1, .kv_heads = 0, .head_dim = 1}, 1));
  CHECK(refused({.layers = 1, .kv_heads = 1, .head_dim = 0}, 1));
  CHECK(refused(small, 0));
  CHECK(refused({.layers = 0xffffffff, .kv_heads = 0xffffffff, .head_dim = 0xffffffff}, 0xffffffff));
  CHECK(refused({.layers = 65'536, .kv_heads = 65'536, .head_dim = 64}, 1));
  CHECK(refused({.layers = 1, .kv_heads = 1, .head_dim = 0xffffffff}, 1000));
}

TEST_CASE("a pool reserves far more than it makes resident") {
  // 64 GiB of address space; a machine with less memory than that must still give it.
  const kv_shape wide{.layers = 32, .kv_heads = 8, .head_dim = 128};
  const auto pool = pool_of(32'768, wide);
  const auto block = pool->allocate_block().value();
  *pool->data(pool->page(block, 31, 7)) = 1;
  CHECK(pool->capacity_blocks() * wide.block_bytes() == std::size_t{64} << 30);
}

TEST_CASE("threads that share blocks leave the pool empty") {
  const auto pool = pool_of(64);
  const auto shared = pool->allocate_block().value();
  std::atomic<int> served{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        pool->retain_block(shared);
        if (const auto own = pool->allocate_block()) {
          // Two owners of one block on one machine word would show here, and to the thread sanitizer.
          *pool->data(pool->page(*own, 0, 0)) = static_cast<kv_element>(round);
          served += *pool->data(pool->page(*own, 0, 0)) == round ? 1 : 0;
          pool->retain_page(pool->page(*own, 1, 1));
          pool->release_block(*own);
          pool->release_page(pool->page(*own, 1, 1));
        }
        pool->release_block(shared);
      }
    });
  for (auto& each : threads)
    each.join();
  CHECK(served == 800);
  CHECK(pool->exclusive(shared));
  pool->release_block(shared);
  CHECK(pool->free_blocks() == 64);
  CHECK(pool->used_pages() == 0);
}
