#include "actors/cache/cache.hpp"

#include "actors/device/status_letter.hpp"
#include "actors/device/step_letters.hpp"

namespace godwit {
namespace {

letter<schema::CacheFound> look_up(cache_actor_state& state, schema::CacheLookup::Reader ask) {
  auto tokens = read_ids(ask.getTokens());
  tokens.resize(std::min<std::size_t>(tokens.size(), ask.getLimit()));
  const auto blocks = state.blocks->find({ask.getTenant().begin(), ask.getTenant().size()}, tokens);
  ++state.counters->cache_lookups;
  state.counters->cache_hits += blocks.empty() ? 0 : 1;
  state.counters->found_tokens += blocks.size() * page_tokens;
  return letter<schema::CacheFound>::make([&](schema::CacheFound::Builder b) {
    b.setRequest(ask.getRequest());
    write_ids(b.initBlocks(static_cast<unsigned>(blocks.size())), blocks);
  });
}

void count(cache_actor_state& state) {
  state.counters->cached_blocks = state.blocks->size();
  state.counters->evicted_blocks = state.blocks->evictions();
  state.counters->free_blocks = state.pool->free_blocks();
}

letter<schema::ActorStatus> describe(const cache_actor_state& state) {
  const auto& counters = *state.counters;
  const gauge gauges[] = {
    {"cached_blocks", static_cast<double>(counters.cached_blocks)},
    {"lookups", static_cast<double>(counters.cache_lookups)},
    {"hits", static_cast<double>(counters.cache_hits)},
    {"found_tokens", static_cast<double>(counters.found_tokens)},
    {"evicted_blocks", static_cast<double>(counters.evicted_blocks)},
  };
  return status_letter("cache", "ready", "", gauges);
}

} // namespace

cache_actor::behavior_type cache(cache_actor::stateful_pointer<cache_actor_state> self,
  std::shared_ptr<page_pool> pool, const block_hasher& hasher, std::uint32_t budget,
  std::shared_ptr<engine_counters> counters) {
  self->state.blocks = std::make_unique<prefix_cache>(pool, hasher, budget);
  self->state.pool = std::move(pool);
  self->state.counters = std::move(counters);
  return {
    [self](const letter<schema::CacheLookup>& mail, const cache_client_actor& client) {
      self->send(client, look_up(self->state, mail.read()));
    },
    [self](const letter<schema::CacheInsert>& mail) {
      const auto tokens = read_ids(mail.read().getTokens());
      const auto tenant = mail.read().getTenant();
      self->state.blocks->insert({tenant.begin(), tenant.size()}, tokens, read_ids(mail.read().getBlocks()));
      count(self->state);
    },
    [self](const letter<schema::CacheRelease>& mail) {
      for (const auto block : mail.read().getBlocks())
        self->state.pool->release_block(block);
      count(self->state);
    },
    [self](const letter<schema::CacheEvict>& mail) {
      const auto blocks = self->state.blocks->evict(mail.read().getBlocks());
      count(self->state);
      return letter<schema::CacheEvicted>::make(
        [&](schema::CacheEvicted::Builder b) { b.setBlocks(blocks); });
    },
    [self](status_atom) { return describe(self->state); },
    // Nothing runs here.
    [](drain_atom) { return drained_letter(0); },
    [self](stop_atom) { self->quit(); },
  };
}

} // namespace godwit
