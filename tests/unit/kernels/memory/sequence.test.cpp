#include "kernels/memory/sequence.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <utility>
#include <vector>

using namespace godwit;

namespace {

constexpr kv_shape small{.layers = 2, .kv_heads = 2, .head_dim = 4};

/// Writes `tokens` positions whose every element is `mark`.
void write(page_pool& pool, sequence& target, std::uint32_t tokens, kv_element mark) {
  REQUIRE(target.reserve(tokens).has_value());
  for (std::uint32_t layer = 0; layer < small.layers; ++layer)
    for (std::uint32_t head = 0; head < small.kv_heads; ++head)
      for (auto p = target.length(); p < target.length() + tokens; ++p) {
        auto* page = pool.data(target.pages(layer, head)[p / page_tokens]);
        for (std::size_t d = 0; d < small.head_dim; ++d) {
          page[d * page_tokens + p % page_tokens] = mark;
          page[(page_tokens + p % page_tokens) * small.head_dim + d] = static_cast<kv_element>(mark + 1);
        }
      }
  target.advance(tokens);
}

/// The mark of one position; all of its elements are checked to have it.
kv_element mark_at(const page_pool& pool, const sequence& of, position_t p) {
  const auto mark = pool.data(of.pages(0, 0)[p / page_tokens])[p % page_tokens];
  for (std::uint32_t layer = 0; layer < small.layers; ++layer)
    for (std::uint32_t head = 0; head < small.kv_heads; ++head) {
      const auto* page = pool.data(of.pages(layer, head)[p / page_tokens]);
      for (std::size_t d = 0; d < small.head_dim; ++d) {
        CHECK(page[d * page_tokens + p % page_tokens] == mark);
        CHECK(page[(page_tokens + p % page_tokens) * small.head_dim + d] == mark + 1);
      }
    }
  return mark;
}

} // namespace

TEST_CASE("a sequence takes blocks as it grows and returns them when it ends") {
  const auto pool = page_pool::create(small, 8).value();
  {
    sequence one(*pool);
    CHECK(one.length() == 0);
    CHECK(one.blocks_needed(1) == 1);
    CHECK(one.blocks_needed(16) == 1);
    CHECK(one.blocks_needed(17) == 2);
    CHECK(one.blocks_needed(0) == 0);
    write(*pool, one, 17, 5);
    CHECK(one.length() == 17);
    CHECK(one.blocks().size() == 2);
    CHECK(one.pages(1, 1).size() == 2);
    CHECK(one.kept(1, 1) == 17);
    CHECK(one.blocks_needed(15) == 0);
    CHECK(one.blocks_needed(16) == 1);
    CHECK(pool->free_blocks() == 6);
    CHECK(mark_at(*pool, one, 16) == 5);
  }
  CHECK(pool->free_blocks() == 8);
}

TEST_CASE("page lists name the pages of their layer and head in every block") {
  const auto pool = page_pool::create(small, 8).value();
  sequence one(*pool);
  REQUIRE(one.reserve(40).has_value());
  one.advance(40);
  for (std::uint32_t layer = 0; layer < 2; ++layer)
    for (std::uint32_t head = 0; head < 2; ++head)
      for (std::size_t i = 0; i < 3; ++i)
        CHECK(one.pages(layer, head)[i] == one.blocks()[i] * 4 + layer * 2 + head);
}

TEST_CASE("reserved blocks are not part of what a cache sees, and truncating gives them back") {
  const auto pool = page_pool::create(small, 8).value();
  sequence one(*pool);
  REQUIRE(one.reserve(33).has_value());
  one.advance(10);
  CHECK(one.blocks().size() == 1);
  CHECK(one.pages(0, 0).size() == 3);
  CHECK(one.kept(0, 0) == 10);
  CHECK(pool->free_blocks() == 5);
  one.truncate(10);
  CHECK(pool->free_blocks() == 7);
  one.truncate(0);
  CHECK(pool->free_blocks() == 8);
  CHECK(one.length() == 0);
}

TEST_CASE("a fork shares everything until one of the two writes") {
  const auto pool = page_pool::create(small, 8).value();
  sequence one(*pool);
  write(*pool, one, 20, 1);
  auto two = one.fork();
  CHECK(pool->free_blocks() == 6);
  CHECK(two.length() == 20);
  CHECK(std::vector<block_id>(two.blocks().begin(), two.blocks().end())
        == std::vector<block_id>(one.blocks().begin(), one.blocks().end()));

  CHECK(two.blocks_needed(1) == 1);
  write(*pool, two, 4, 7);
  CHECK(pool->free_blocks() == 5);
  CHECK(two.blocks()[0] == one.blocks()[0]);
  CHECK(two.blocks()[1] != one.blocks()[1]);

  // The first is the only owner of its last block now: it writes in place.
  CHECK(one.blocks_needed(1) == 0);
  write(*pool, one, 4, 9);
  for (position_t p = 0; p < 24; ++p) {
    CHECK(mark_at(*pool, one, p) == (p < 20 ? 1 : 9));
    CHECK(mark_at(*pool, two, p) == (p < 20 ? 1 : 7));
  }
}

TEST_CASE("a fork of wide pages copies keys and values of the shared tail") {
  constexpr kv_shape wide{.layers = 1, .kv_heads = 1, .head_dim = 4, .type = kv_type::f32};
  const auto pool = page_pool::create(wide, 4).value();
  sequence one(*pool);
  REQUIRE(one.reserve(3).has_value());
  const auto first = [&](const sequence& of) {
    return reinterpret_cast<float*>(pool->data(of.pages(0, 0)[0]));
  };
  for (std::size_t i = 0; i < wide.page_elements(); ++i)
    first(one)[i] = static_cast<float>(i) + 0.5F;
  one.advance(3);
  auto two = one.fork();
  REQUIRE(two.reserve(1).has_value());
  REQUIRE(first(two) != first(one));
  for (std::size_t d = 0; d < wide.head_dim; ++d)
    for (std::size_t p = 0; p < 3; ++p) {
      CHECK(first(two)[d * page_tokens + p] == static_cast<float>(d * page_tokens + p) + 0.5F);
      const auto v = (page_tokens + p) * wide.head_dim + d;
      CHECK(first(two)[v] == static_cast<float>(v) + 0.5F);
    }
}

TEST_CASE("a fork does not share blocks that were only reserved") {
  const auto pool = page_pool::create(small, 8).value();
  sequence one(*pool);
  write(*pool, one, 16, 1);
  REQUIRE(one.reserve(16).has_value());
  auto two = one.fork();
  write(*pool, two, 3, 2);
  write(*pool, one, 3, 3);
  CHECK(mark_at(*pool, two, 17) == 2);
  CHECK(mark_at(*pool, one, 17) == 3);
}

TEST_CASE("a fork outlives its origin") {
  const auto pool = page_pool::create(small, 8).value();
  auto one = std::make_unique<sequence>(*pool);
  write(*pool, *one, 20, 4);
  auto two = one->fork();
  one.reset();
  CHECK(pool->free_blocks() == 6);
  CHECK(mark_at(*pool, two, 19) == 4);
  CHECK(two.blocks_needed(1) == 0);
}

TEST_CASE("blocks are adopted behind full ones too, and the sequence goes on behind them") {
  const auto pool = page_pool::create(small, 8).value();
  sequence whole{*pool};
  write(*pool, whole, 48, 7);
  sequence parts{*pool};
  write(*pool, parts, 16, 3);
  const auto found = whole.blocks().subspan(1);
  pool->retain_blocks(found);
  parts.adopt(found);
  CHECK(parts.length() == 48);
  CHECK(parts.blocks_needed(16) == 1);
  write(*pool, parts, 5, 9);
  CHECK(mark_at(*pool, parts, 15) == 3);
  CHECK(mark_at(*pool, parts, 16) == 7);
  CHECK(mark_at(*pool, parts, 47) == 7);
  CHECK(mark_at(*pool, parts, 52) == 9);
  CHECK(pool->free_blocks() == 3);
}

TEST_CASE("adopted blocks are the sequence's to release, and are copied when cut into") {
  const auto pool = page_pool::create(small, 8).value();
  sequence writer(*pool);
  write(*pool, writer, 32, 6);
  const std::vector<block_id> found(writer.blocks().begin(), writer.blocks().end());
  for (const auto block : found)
    pool->retain_block(block);
  {
    sequence reader(*pool);
    reader.adopt(found);
    CHECK(reader.length() == 32);
    CHECK(mark_at(*pool, reader, 31) == 6);
    reader.truncate(20);
    CHECK(reader.blocks_needed(4) == 1);
    write(*pool, reader, 4, 8);
    CHECK(mark_at(*pool, reader, 19) == 6);
    CHECK(mark_at(*pool, reader, 20) == 8);
    CHECK(mark_at(*pool, writer, 20) == 6);
  }
  CHECK(pool->exclusive(found[0]));
  CHECK(pool->free_blocks() == 6);
}

TEST_CASE("a reservation that does not fit changes nothing") {
  const auto pool = page_pool::create(small, 3).value();
  sequence one(*pool);
  write(*pool, one, 20, 1);
  auto two = one.fork();
  const auto failed = two.reserve(29);
  REQUIRE_FALSE(failed.has_value());
  CHECK(failed.error().code == errc::resource_exhausted);
  CHECK(pool->free_blocks() == 1);
  CHECK(two.length() == 20);
  CHECK(two.blocks()[1] == one.blocks()[1]);
  CHECK(two.pages(0, 0).size() == 2);
  // What fits still does.
  write(*pool, two, 12, 2);
  CHECK(mark_at(*pool, one, 19) == 1);
}

TEST_CASE("moving hands the pages over") {
  const auto pool = page_pool::create(small, 4).value();
  sequence one(*pool);
  write(*pool, one, 20, 1);
  sequence two(std::move(one));
  CHECK(two.length() == 20);
  sequence three(*pool);
  write(*pool, three, 5, 2);
  three = std::move(two);
  CHECK(three.length() == 20);
  CHECK(mark_at(*pool, three, 19) == 1);
  CHECK(pool->free_blocks() == 2);
  auto& self = three;
  three = std::move(self);
  CHECK(three.length() == 20);
}
