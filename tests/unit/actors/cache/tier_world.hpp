#pragma once

#include "actors/cache/tiered_cache.hpp"
#include "kernels/memory/block_copy.hpp"
#include "messages/check.hpp"
#include "tests/unit/actors/cache/manual_lane.hpp"
#include "tests/unit/actors/cache/memory_cold_store.hpp"

#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <random>
#include <vector>

namespace godwit::test {

/// A tiered cache over a small pool. Nothing moves unless a test says so, or its options bring lanes with
/// threads. The content of a block is a function of all tokens up to its end, so that every block can be
/// checked for being the right one.
struct tier_world {
  static constexpr kv_shape shape{1, 1, 8, kv_type::f16};

  explicit tier_world(
    std::uint32_t blocks, tier_options options = {}, std::shared_ptr<memory_cold_store> on_disk = nullptr)
    : pool(page_pool::create(shape, blocks).value()), cold(std::move(on_disk)) {
    if (cold)
      options.cold = cold;
    if (!options.lanes)
      options.lanes = [this] {
        return tier_lanes{std::make_unique<manual_lane>(memory), std::make_unique<manual_lane>(read),
          std::make_unique<manual_lane>(write)};
      };
    cache = tiered_cache::create(pool, hasher, {.budget = blocks, .pin_quota = blocks}, options, counters,
      [this](tiered_cache::task what, std::chrono::milliseconds delay) {
        const std::lock_guard lock(mutex);
        (delay.count() > 0 ? later : posted).push_back(std::move(what));
      }).value();
  }

  std::size_t block_bytes() const { return pool->shape().block_bytes(); }

  static std::vector<token_id> text(std::size_t blocks, std::uint32_t salt) {
    std::mt19937 dice(salt);
    std::vector<token_id> tokens(blocks * page_tokens);
    for (auto& token : tokens)
      token = static_cast<token_id>(dice() % 1000);
    return tokens;
  }

  std::vector<block_identity> names(std::span<const token_id> tokens) const {
    std::vector<block_identity> out(tokens.size() / page_tokens);
    hasher.chain(hasher.root("t"), tokens, out);
    return out;
  }

  std::uint64_t content(std::span<const token_id> tokens, std::size_t index) const {
    std::uint64_t state = 14695981039346656037U;
    for (std::size_t i = 0; i < (index + 1) * page_tokens; ++i)
      state = (state ^ (tokens[i] + 1)) * 1099511628211U;
    return state;
  }
  void write_content(block_id block, std::uint64_t seed) const {
    const auto bytes = block_contents(*pool, block);
    for (std::size_t i = 0; i < bytes.size(); i += sizeof seed, seed = seed * 6364136223846793005U + 1)
      std::memcpy(bytes.data() + i, &seed, sizeof seed);
  }
  bool has_content(block_id block, std::uint64_t seed) const {
    const auto bytes = block_contents(*pool, block);
    for (std::size_t i = 0; i < bytes.size(); i += sizeof seed, seed = seed * 6364136223846793005U + 1)
      if (std::memcmp(bytes.data() + i, &seed, sizeof seed) != 0)
        return false;
    return true;
  }

  /// Computes a text and tells the cache. @returns false if the pool is too full
  bool compute(std::span<const token_id> tokens, const std::string& tenant = "t") {
    std::vector<block_id> blocks;
    for (std::size_t i = 0; i < tokens.size() / page_tokens; ++i) {
      const auto block = pool->allocate_block();
      if (!block) {
        pool->release_blocks(blocks);
        return false;
      }
      write_content(*block, content(tokens, i));
      blocks.push_back(*block);
    }
    cache->device().insert(tenant, tokens, blocks);
    return true;
  }

  /// What a request gets, at once and later.
  struct found {
    std::vector<block_id> blocks;
    tier_answer answer;
    std::optional<tier_load> load;
    std::optional<tier_load> tail;
  };
  std::shared_ptr<found> ask(
    request_id request, std::span<const token_id> tokens, const std::string& tenant = "t") {
    const auto out = std::make_shared<found>();
    out->answer = cache->find(request, tenant, tokens, [out](const tier_load& what) {
      if (out->answer.tail > 0
          && what.first
               == out->blocks.size() + (out->load ? 0 : out->answer.loading - out->answer.tail)
                    + out->answer.gap) {
        GODWIT_CHECK(!out->tail);
        out->tail = what;
        return;
      }
      GODWIT_CHECK(!out->load && what.first == out->blocks.size());
      out->load = what;
      out->blocks.insert(out->blocks.end(), what.blocks.begin(), what.blocks.end());
    });
    out->blocks = out->answer.blocks;
    return out;
  }
  bool right(const found& what, std::span<const token_id> tokens) const {
    for (std::size_t i = 0; i < what.blocks.size(); ++i)
      if (!has_content(what.blocks[i], content(tokens, i)))
        return false;
    for (std::size_t i = 0; what.tail && i < what.tail->blocks.size(); ++i)
      if (!has_content(what.tail->blocks[i], content(tokens, what.tail->first + i)))
        return false;
    return true;
  }
  void give_back(found& what) {
    pool->release_blocks(what.blocks);
    what.blocks.clear();
    if (what.tail)
      pool->release_blocks(std::exchange(what.tail->blocks, {}));
  }
  /// Asks, waits for all, checks, and gives back. @returns blocks
  std::size_t touch(std::span<const token_id> tokens, const std::string& tenant = "t") {
    const auto got = ask(99, tokens, tenant);
    settle();
    GODWIT_CHECK(right(*got, tokens));
    const auto count = got->blocks.size();
    give_back(*got);
    return count;
  }

  /// What the lanes posted, one thing. @returns false if that is nothing
  bool take_posted() {
    tiered_cache::task next;
    {
      const std::lock_guard lock(mutex);
      if (posted.empty())
        return false;
      next = std::move(posted.front());
      posted.pop_front();
    }
    next();
    return true;
  }
  bool step() { return take_posted() || memory->run_one() || read->run_one() || write->run_one(); }
  void settle() {
    while (step()) {
    }
  }
  /// Lets time pass.
  void tick() {
    for (auto& what : std::exchange(later, {}))
      what();
  }
  std::uint32_t evict(std::uint32_t blocks) {
    std::optional<std::uint32_t> out;
    cache->evict(blocks, [&](std::uint32_t freed) { out = freed; });
    settle();
    return out.value();
  }

  std::shared_ptr<page_pool> pool;
  block_hasher hasher{identity_key::derive({}), {}};
  std::shared_ptr<engine_counters> counters = std::make_shared<engine_counters>();
  std::shared_ptr<memory_cold_store> cold; ///< null if the options brought another one
  std::shared_ptr<job_list> memory = std::make_shared<job_list>();
  std::shared_ptr<job_list> read = std::make_shared<job_list>();
  std::shared_ptr<job_list> write = std::make_shared<job_list>();
  std::mutex mutex; ///< of what is posted
  std::deque<tiered_cache::task> posted;
  std::deque<tiered_cache::task> later;
  std::unique_ptr<tiered_cache> cache;
};

} // namespace godwit::test
