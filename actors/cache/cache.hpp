#pragma once

#include "actors/cache/tiered_cache.hpp"
#include "actors/device/engine_counters.hpp"
#include "messages/catalogue_handover.hpp"

#include <caf/typed_event_based_actor.hpp>

#include <memory>

namespace godwit {

/// What follows from work in a lane, to be done by the cache.
struct cache_task {
  tiered_cache::task run;
};

} // namespace godwit

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(godwit::cache_task)

namespace godwit {

/// The cache with what those ask who hand prompts over, and what it sends to itself.
using cache_behaviour = cache_actor::extend_with<cache_room_actor>::extend<caf::reacts_to<cache_task>>;

/// State of the cache actor.
struct cache_actor_state {
  std::unique_ptr<tiered_cache> blocks;
  std::shared_ptr<page_pool> pool;
  std::shared_ptr<engine_counters> counters;
  const char* name = "cache";
};

/// Keeps the prefix cache of one page pool, and the tiers below it.
/// @param options what it may hold on the device
/// @param tiers the host tier must be one that host_tier::create() takes
cache_behaviour::behavior_type cache(cache_behaviour::stateful_pointer<cache_actor_state> self,
  const std::shared_ptr<page_pool>& pool, const block_hasher& hasher, const prefix_cache_options& options,
  const tier_options& tiers, const std::shared_ptr<engine_counters>& counters);

} // namespace godwit
