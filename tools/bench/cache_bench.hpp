#pragma once

#include "messages/result.hpp"
#include "tools/bench/model_bench.hpp"
#include "tools/bench/tier_bench.hpp"

#include <cstdint>
#include <filesystem>

namespace godwit::bench {

/// What the index of the prefix cache does, without pages or a model.
struct index_rates {
  std::uint32_t blocks = 0;   ///< of the prefix that is looked up, and of the chain that is inserted
  double lookup_us = 0;       ///< of the whole prefix, identities and references included
  double inserted_per_s = 0;  ///< blocks, identities and references included
  double bytes_per_block = 0; ///< of the index, with `indexed` blocks in it
  std::uint32_t indexed = 0;
};

/// Page pool and sequences, in the KV shape of a model.
struct page_rates {
  std::uint32_t pages = 0; ///< at least 100,000, in whole blocks
  double pool_ms = 0;      ///< to allocate and free them
  std::uint32_t fork_tokens = 0;
  double fork_us = 0;            ///< fork of a sequence of that length, and room for its next token
  std::uint32_t fork_blocks = 0; ///< that this took from the pool
};

/// Time from a prompt to the logits of its last token.
struct hit_rates {
  std::uint32_t tokens = 0;
  double cold_ms = 0;
  double hit_ms = 0; ///< all of its full blocks but the last are found
};

struct cache_rates {
  index_rates index;
  page_rates pages;
  hit_rates hit;
  tier_rates tiers;
};

/// Measures the cache; medians over rounds, and rounds with and without a hit take turns.
/// @param tokens length of the prompt that is found
/// @param folder on the disk of the lowest tier; a folder of its own is made there and removed
/// @returns what loading returns; `invalid_argument` for a length of less than two blocks or beyond the
/// context
result<cache_rates> cache(
  const model_settings& settings, std::uint32_t tokens, const std::filesystem::path& folder);

} // namespace godwit::bench
