#pragma once

#include "actors/cache/prefix_cache.hpp"
#include "actors/device/engine_counters.hpp"
#include "messages/catalogue.hpp"

#include <caf/typed_event_based_actor.hpp>

#include <memory>

namespace godwit {

/// State of the cache actor.
struct cache_actor_state {
  std::unique_ptr<prefix_cache> blocks;
  std::shared_ptr<page_pool> pool;
  std::shared_ptr<engine_counters> counters;
  const char* name = "cache";
};

/// Keeps the prefix cache of one page pool.
/// @param options what it may hold
cache_actor::behavior_type cache(cache_actor::stateful_pointer<cache_actor_state> self,
  std::shared_ptr<page_pool> pool, const block_hasher& hasher, const prefix_cache_options& options,
  std::shared_ptr<engine_counters> counters);

} // namespace godwit
