#include "tools/bench/cache_bench.hpp"

#include "actors/cache/prefix_cache.hpp"
#include "kernels/gguf/file.hpp"
#include "kernels/memory/page_pool.hpp"
#include "kernels/memory/sequence.hpp"
#include "kernels/models/model.hpp"
#include "messages/check.hpp"
#include "tools/bench/measuring.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace godwit::bench {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::uint32_t prefix_blocks = 4096;
constexpr std::uint32_t indexed_blocks = 100 * prefix_blocks;
constexpr std::uint32_t measured_pages = 100000;
constexpr std::uint32_t fork_length = 8000;

/// A text of its own for each number.
std::vector<token_id> text(std::size_t tokens, std::uint32_t number, std::uint32_t vocabulary) {
  return any_tokens(tokens, vocabulary, number * 2654435761U + 1);
}

block_hasher hasher_for(const kv_shape& shape) {
  cache_scope scope;
  scope.shape = shape;
  return {identity_key::random(), scope};
}

std::vector<block_id> allocate(page_pool& pool, std::uint32_t count) {
  std::vector<block_id> blocks(count);
  for (auto& block : blocks) {
    block = pool.allocate_block().value();
  }
  return blocks;
}

/// Pages are never touched here, so that the smallest shape does as well as any.
index_rates measure_index(std::uint32_t rounds) {
  const kv_shape shape{1, 1, 2, kv_type::f16};
  const std::shared_ptr<page_pool> pool = std::move(*page_pool::create(shape, indexed_blocks));
  prefix_cache cache(pool, hasher_for(shape), {.budget = indexed_blocks});
  index_rates out;
  out.blocks = prefix_blocks;
  std::vector<double> inserts;
  std::vector<std::vector<token_id>> texts;
  for (std::uint32_t i = 0; i < indexed_blocks / prefix_blocks; ++i) {
    texts.push_back(text(std::size_t{prefix_blocks} * page_tokens, i, 50000));
    const auto blocks = allocate(*pool, prefix_blocks);
    const auto start = clock::now();
    cache.insert("tenant", texts.back(), blocks);
    inserts.push_back(seconds_since(start));
  }
  GODWIT_CHECK(cache.size() == indexed_blocks);
  out.inserted_per_s = prefix_blocks / median(inserts);
  out.indexed = indexed_blocks;
  out.bytes_per_block = static_cast<double>(cache.index_bytes()) / indexed_blocks;
  std::vector<double> lookups;
  for (std::uint32_t round = 0; round < 20 * rounds; ++round) {
    const auto start = clock::now();
    const auto found = cache.find("tenant", texts[round % 4]);
    lookups.push_back(seconds_since(start));
    GODWIT_CHECK(found.size() == prefix_blocks);
    pool->release_blocks(found);
  }
  out.lookup_us = median(lookups) * 1e6;
  return out;
}

page_rates measure_pages(const kv_shape& shape, std::uint32_t rounds) {
  page_rates out;
  const auto blocks = std::max(
    (measured_pages + shape.pages_per_block() - 1) / shape.pages_per_block(), fork_length / page_tokens + 2);
  const auto pool = page_pool::create(shape, blocks).value();
  out.pages = blocks * shape.pages_per_block();
  std::vector<double> times;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const auto start = clock::now();
    for (const auto block : allocate(*pool, blocks)) {
      pool->release_block(block);
    }
    times.push_back(seconds_since(start));
  }
  out.pool_ms = median(times) * 1e3;

  sequence trunk(*pool);
  // In the middle of a block, so that the fork has one to copy.
  out.fork_tokens = fork_length + page_tokens / 2;
  GODWIT_CHECK(trunk.reserve(out.fork_tokens).has_value());
  trunk.advance(out.fork_tokens);
  times.clear();
  for (std::uint32_t round = 0; round < 10 * rounds; ++round) {
    const auto free = pool->free_blocks();
    const auto start = clock::now();
    auto branch = trunk.fork();
    GODWIT_CHECK(branch.reserve(1).has_value());
    times.push_back(seconds_since(start));
    out.fork_blocks = free - pool->free_blocks();
  }
  out.fork_us = median(times) * 1e6;
  return out;
}

hit_rates measure_hit(model& runs, std::uint32_t tokens, std::uint32_t rounds) {
  const auto& shape = runs.shape();
  const auto blocks = 2 * blocks_for(tokens) + 2;
  const std::shared_ptr<page_pool> pool = page_pool::create(shape.kv, blocks).value();
  prefix_cache cache(pool, hasher_for(shape.kv), {.budget = blocks});
  std::vector<float> logits(shape.vocabulary);
  std::vector<double> cold;
  std::vector<double> hit;
  for (std::uint32_t round = 0; round <= rounds; ++round) {
    const auto prompt = text(tokens, round, shape.vocabulary);
    {
      sequence target(*pool);
      const auto start = clock::now();
      GODWIT_CHECK(read_prompt(runs, target, prompt, logits).has_value());
      cold.push_back(seconds_since(start));
      const auto full = target.blocks().first(tokens / page_tokens);
      pool->retain_blocks(full);
      cache.insert("tenant", prompt, full);
    }
    const auto expected = logits;
    {
      sequence target(*pool);
      const auto start = clock::now();
      target.adopt(cache.find("tenant", std::span(prompt).first(tokens - 1)));
      GODWIT_CHECK(target.length() > 0);
      const auto rest = std::span(prompt).subspan(target.length());
      GODWIT_CHECK(read_prompt(runs, target, rest, logits).has_value());
      hit.push_back(seconds_since(start));
    }
    // What is measured must be right.
    GODWIT_CHECK(logits == expected);
    cache.evict(blocks);
  }
  // The first round warms up.
  cold.erase(cold.begin());
  hit.erase(hit.begin());
  return {tokens, median(cold) * 1e3, median(hit) * 1e3};
}

} // namespace

result<cache_rates> cache(
  const model_settings& settings, std::uint32_t tokens, const std::filesystem::path& folder) {
  const auto loaded = load(settings);
  if (!loaded) {
    return fail(loaded);
  }
  const auto& runs = loaded->runs;
  const auto context = runs->shape().context;
  if (tokens < 2 * page_tokens || tokens > context) {
    return fail(errc::invalid_argument,
      "tokens is " + std::to_string(tokens) + ", outside of " + std::to_string(2 * page_tokens) + " to "
        + std::to_string(context),
      "tokens");
  }
  cache_rates out;
  out.index = measure_index(settings.rounds);
  out.pages = measure_pages(runs->shape().kv, settings.rounds);
  out.hit = measure_hit(*runs, tokens, settings.rounds);
  auto tiers = measure_tiers(*runs, tokens, settings.rounds, folder);
  if (!tiers) {
    return fail(tiers);
  }
  out.tiers = *tiers;
  return out;
}

} // namespace godwit::bench
