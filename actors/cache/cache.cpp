#include "actors/cache/cache.hpp"

#include "actors/device/status_letter.hpp"
#include "actors/device/step_letters.hpp"
#include "messages/actor_error.hpp"

#include <chrono>

namespace godwit {
namespace {

/// A pin is a promise for a while, not for ever.
constexpr std::uint32_t longest_pin_seconds = 24 * 60 * 60;

std::string_view text_of(capnp::Text::Reader text) {
  return {text.begin(), text.size()};
}

letter<schema::CacheFound> look_up(cache_actor_state& state, schema::CacheLookup::Reader ask) {
  auto tokens = read_ids(ask.getTokens());
  tokens.resize(std::min<std::size_t>(tokens.size(), ask.getLimit()));
  const auto blocks = state.blocks->find(text_of(ask.getTenant()), tokens);
  ++state.counters->cache_lookups;
  state.counters->cache_hits += blocks.empty() ? 0 : 1;
  state.counters->found_tokens += blocks.size() * page_tokens;
  return letter<schema::CacheFound>::make([&](schema::CacheFound::Builder b) {
    b.setRequest(ask.getRequest());
    write_ids(b.initBlocks(static_cast<unsigned>(blocks.size())), blocks);
  });
}

void count(cache_actor_state& state) {
  state.counters->pinned_blocks = state.blocks->pinned_blocks();
  state.counters->index_bytes = state.blocks->index_bytes();
  state.counters->cached_blocks = state.blocks->size();
  state.counters->evicted_blocks = state.blocks->evictions();
  state.counters->free_blocks = state.pool->free_blocks();
}

void learn(prefix_cache& blocks, schema::CacheInsert::Reader told) {
  const auto tokens = read_ids(told.getTokens());
  const auto list = read_ids(told.getBlocks());
  const block_identity parent{told.getParentLow(), told.getParentHigh()};
  if (parent == block_identity{})
    blocks.insert(text_of(told.getTenant()), tokens, list);
  else
    blocks.extend(parent, tokens, list);
}

result<prefix_pin> pin(prefix_cache& blocks, schema::CachePin::Reader ask) {
  if (ask.getSeconds() == 0 || ask.getSeconds() > longest_pin_seconds)
    return fail(errc::invalid_argument,
      "a pin lasts from 1 to " + std::to_string(longest_pin_seconds) + " seconds", "seconds");
  const auto until = prefix_cache::clock::now() + std::chrono::seconds(ask.getSeconds());
  return blocks.pin(text_of(ask.getTenant()), read_ids(ask.getTokens()), until);
}

void end_old_pins(cache_actor_state& state) {
  state.blocks->expire(prefix_cache::clock::now());
  count(state);
}

letter<schema::ActorStatus> describe(const cache_actor_state& state) {
  const auto& counters = *state.counters;
  const gauge gauges[] = {
    {"cached_blocks", static_cast<double>(counters.cached_blocks)},
    {"lookups", static_cast<double>(counters.cache_lookups)},
    {"hits", static_cast<double>(counters.cache_hits)},
    {"found_tokens", static_cast<double>(counters.found_tokens)},
    {"evicted_blocks", static_cast<double>(counters.evicted_blocks)},
    {"pinned_blocks", static_cast<double>(counters.pinned_blocks)},
    {"pins", static_cast<double>(state.blocks->pins())},
    {"index_bytes", static_cast<double>(counters.index_bytes)},
  };
  return status_letter("cache", "ready", "", gauges);
}

} // namespace

cache_actor::behavior_type cache(cache_actor::stateful_pointer<cache_actor_state> self,
  std::shared_ptr<page_pool> pool, const block_hasher& hasher, const prefix_cache_options& options,
  std::shared_ptr<engine_counters> counters) {
  self->state.blocks = std::make_unique<prefix_cache>(pool, hasher, options);
  self->state.pool = std::move(pool);
  self->state.counters = std::move(counters);
  return {
    [self](const letter<schema::CacheLookup>& mail, const cache_client_actor& client) {
      self->send(client, look_up(self->state, mail.read()));
    },
    [self](const letter<schema::CacheInsert>& mail) {
      learn(*self->state.blocks, mail.read());
      count(self->state);
    },
    [self](const letter<schema::CacheRelease>& mail) {
      self->state.pool->release_blocks(read_ids(mail.read().getBlocks()));
      count(self->state);
    },
    [self](const letter<schema::CachePin>& mail) -> caf::result<letter<schema::CachePinned>> {
      end_old_pins(self->state);
      const auto made = pin(*self->state.blocks, mail.read());
      count(self->state);
      if (!made)
        return to_caf_error(made.error());
      return letter<schema::CachePinned>::make([&](schema::CachePinned::Builder b) {
        b.setPin(made->id);
        b.setBlocks(made->blocks);
      });
    },
    [self](const letter<schema::CacheUnpin>& mail) {
      self->state.blocks->unpin(text_of(mail.read().getTenant()), mail.read().getPin());
      count(self->state);
    },
    [self](const letter<schema::CacheEvict>& mail) {
      end_old_pins(self->state);
      const auto blocks = self->state.blocks->evict(mail.read().getBlocks());
      count(self->state);
      return letter<schema::CacheEvicted>::make(
        [&](schema::CacheEvicted::Builder b) { b.setBlocks(blocks); });
    },
    [self](status_atom) {
      // Asked each second in a node: pins end in time although nothing else happens.
      end_old_pins(self->state);
      return describe(self->state);
    },
    // Nothing runs here.
    [](drain_atom) { return drained_letter(0); },
    [self](stop_atom) { self->quit(); },
  };
}

} // namespace godwit
