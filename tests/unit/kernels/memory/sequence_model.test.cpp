// Random histories of sequences and a cache against a model that has no pages: a sequence is a list of
// numbers, a cached prefix another. After every step contents and reference counts must be what the model
// says.
#include "kernels/memory/sequence.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

using namespace godwit;

namespace {

constexpr kv_shape shape{.layers = 2, .kv_heads = 2, .head_dim = 2};

kv_element element(kv_element value, std::uint32_t list, std::size_t part, std::size_t d) {
  return static_cast<kv_element>(value * 31U + list * 7U + part * 3U + d);
}

struct subject {
  sequence real;
  std::vector<kv_element> expected;
};

struct cached {
  std::vector<block_id> blocks;
  std::vector<kv_element> expected;
};

class world {
 public:
  explicit world(std::uint32_t seed) : random_(seed), pool_(page_pool::create(shape, 40).value()) {}

  void step() {
    const auto kind = pick(10);
    if (kind == 0 || subjects_.empty())
      subjects_.push_back({sequence(*pool_), {}});
    else if (kind <= 4)
      extend(any(), 1 + pick(40));
    else if (kind == 5)
      fork(any());
    else if (kind == 6)
      cut(any());
    else if (kind == 7)
      store(any());
    else if (kind == 8)
      adopt();
    else
      erase();
    if (subjects_.size() > 8)
      subjects_.erase(subjects_.begin());
    if (cache_.size() > 4)
      drop_cached();
  }

  void verify() const {
    std::map<block_id, std::uint32_t> references;
    for (const auto& each : subjects_) {
      REQUIRE(each.real.length() == each.expected.size());
      REQUIRE(each.real.blocks().size() == (each.expected.size() + 15) / 16);
      for (const auto block : each.real.blocks())
        ++references[block];
      for (std::uint32_t list = 0; list < shape.pages_per_block(); ++list) {
        REQUIRE(each.real.kept(list / 2, list % 2) == each.expected.size());
        verify_pages(each.real.pages(list / 2, list % 2), list, each.expected);
      }
    }
    for (const auto& each : cache_)
      for (const auto block : each.blocks)
        ++references[block];
    std::uint32_t reserved = 0;
    for (const auto& each : subjects_)
      reserved += static_cast<std::uint32_t>(each.real.pages(0, 0).size() - each.real.blocks().size());
    REQUIRE(pool_->free_blocks() + references.size() + reserved == pool_->capacity_blocks());
    REQUIRE(pool_->used_pages() == (references.size() + reserved) * shape.pages_per_block());
    for (const auto& [block, count] : references) {
      REQUIRE(pool_->exclusive(block) == (count == 1));
      for (std::uint32_t list = 0; list < shape.pages_per_block(); ++list)
        REQUIRE(pool_->references(block * shape.pages_per_block() + list) == count);
    }
  }

  void end() {
    subjects_.clear();
    while (!cache_.empty())
      drop_cached();
    REQUIRE(pool_->free_blocks() == pool_->capacity_blocks());
    REQUIRE(pool_->used_pages() == 0);
  }

 private:
  std::uint32_t pick(std::size_t below) { return static_cast<std::uint32_t>(random_() % below); }
  subject& any() { return subjects_[pick(subjects_.size())]; }

  void verify_pages(
    std::span<const page_id> pages, std::uint32_t list, const std::vector<kv_element>& expected) const {
    for (std::size_t p = 0; p < expected.size(); ++p) {
      const auto* page = std::as_const(*pool_).data(pages[p / 16]);
      for (std::size_t part = 0; part < 2; ++part)
        for (std::size_t d = 0; d < shape.head_dim; ++d)
          REQUIRE(page[(part * 16 + p % 16) * shape.head_dim + d] == element(expected[p], list, part, d));
    }
  }

  void extend(subject& target, std::uint32_t tokens) {
    const auto needed = target.real.blocks_needed(tokens);
    const auto free = pool_->free_blocks();
    const auto reserved = target.real.reserve(tokens);
    REQUIRE(reserved.has_value() == (needed <= free));
    REQUIRE(pool_->free_blocks() == (reserved ? free - needed : free));
    if (!reserved)
      return;
    // Now and then fewer than reserved, as a decoder does that was cancelled.
    const auto written = pick(4) == 0 ? pick(tokens + 1) : tokens;
    for (std::uint32_t i = 0; i < written; ++i) {
      const auto value = static_cast<kv_element>(random_());
      const auto p = target.expected.size();
      for (std::uint32_t list = 0; list < shape.pages_per_block(); ++list) {
        auto* page = pool_->data(target.real.pages(list / 2, list % 2)[p / 16]);
        for (std::size_t part = 0; part < 2; ++part)
          for (std::size_t d = 0; d < shape.head_dim; ++d)
            page[(part * 16 + p % 16) * shape.head_dim + d] = element(value, list, part, d);
      }
      target.expected.push_back(value);
    }
    target.real.advance(written);
  }

  void fork(const subject& origin) {
    subject twin{origin.real.fork(), origin.expected};
    subjects_.push_back(std::move(twin));
  }

  void cut(subject& target) {
    const auto length = pick(target.expected.size() + 1);
    target.real.truncate(length);
    target.expected.resize(length);
  }

  void store(const subject& origin) {
    const auto full = origin.expected.size() / 16;
    cached entry;
    entry.blocks.assign(
      origin.real.blocks().begin(), origin.real.blocks().begin() + static_cast<std::ptrdiff_t>(full));
    entry.expected.assign(
      origin.expected.begin(), origin.expected.begin() + static_cast<std::ptrdiff_t>(full * 16));
    for (const auto block : entry.blocks)
      pool_->retain_block(block);
    cache_.push_back(std::move(entry));
  }

  void adopt() {
    if (cache_.empty())
      return;
    const auto& entry = cache_[pick(cache_.size())];
    for (const auto block : entry.blocks)
      pool_->retain_block(block);
    subject made{sequence(*pool_), entry.expected};
    made.real.adopt(entry.blocks);
    subjects_.push_back(std::move(made));
  }

  void erase() { subjects_.erase(subjects_.begin() + pick(subjects_.size())); }

  /// Releases a cached prefix page by page or block by block; it must not matter which.
  void drop_cached() {
    const auto entry = cache_.begin() + pick(cache_.size());
    for (const auto block : entry->blocks)
      if (pick(2) == 0) {
        pool_->release_block(block);
      } else {
        std::vector<std::uint32_t> order{0, 1, 2, 3};
        std::ranges::shuffle(order, random_);
        for (const auto list : order)
          pool_->release_page(block * shape.pages_per_block() + list);
      }
    cache_.erase(entry);
  }

  std::mt19937 random_;
  std::unique_ptr<page_pool> pool_;
  std::vector<subject> subjects_;
  std::vector<cached> cache_;
};

} // namespace

TEST_CASE("random histories of sequences keep their contents and counts, and leave nothing behind") {
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    INFO("seed " << seed);
    world one(seed);
    for (int i = 0; i < 150; ++i) {
      one.step();
      one.verify();
    }
    one.end();
  }
}
