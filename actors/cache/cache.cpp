#include "actors/cache/cache.hpp"

#include "actors/device/status_letter.hpp"
#include "actors/device/step_letters.hpp"
#include "messages/actor_error.hpp"
#include "messages/check.hpp"

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <chrono>

namespace godwit {
namespace {

/// A pin is a promise for a while, not for ever.
constexpr std::uint32_t longest_pin_seconds = 24 * 60 * 60;

std::string_view text_of(capnp::Text::Reader text) {
  return {text.begin(), text.size()};
}

using self_pointer = cache_behaviour::stateful_pointer<cache_actor_state>;

letter<schema::CacheFound> found(request_id request, const tier_load& what) {
  return letter<schema::CacheFound>::make([&](schema::CacheFound::Builder b) {
    b.setRequest(request);
    write_ids(b.initBlocks(static_cast<unsigned>(what.blocks.size())), what.blocks);
    b.setFirst(what.first);
    b.setHost(what.host);
    b.setDisk(what.disk);
    b.setLoading(what.loading);
  });
}

void look_up(self_pointer self, schema::CacheLookup::Reader ask, const cache_client_actor& client) {
  auto& state = self->state;
  auto tokens = read_ids(ask.getTokens());
  tokens.resize(std::min<std::size_t>(tokens.size(), ask.getLimit()));
  const auto request = ask.getRequest();
  const auto answer = state.blocks->find(request, text_of(ask.getTenant()), tokens,
    [self, request, client](const tier_load& what) { self->send(client, found(request, what)); });
  ++state.counters->cache_lookups;
  state.counters->cache_hits += answer.blocks.empty() && answer.loading == 0 ? 0 : 1;
  state.counters->found_tokens += answer.blocks.size() * page_tokens;
  self->send(client, letter<schema::CacheFound>::make([&](schema::CacheFound::Builder b) {
    b.setRequest(request);
    write_ids(b.initBlocks(static_cast<unsigned>(answer.blocks.size())), answer.blocks);
    b.setLoading(answer.loading);
    b.setPatienceMs(static_cast<std::uint32_t>(answer.patience.count()));
    b.setWaiting(answer.waiting);
    b.setGap(answer.gap);
    b.setTail(answer.tail);
  }));
}

void count(const cache_actor_state& state) {
  state.blocks->count();
}

void learn(tiered_cache& blocks, schema::CacheInsert::Reader told) {
  const auto list = read_ids(told.getBlocks());
  const block_identity parent{told.getParentLow(), told.getParentHigh()};
  auto names = read_names(told.getNames());
  if (names.empty())
    names = blocks.name(text_of(told.getTenant()), parent, read_ids(told.getTokens()));
  if (parent == block_identity{}) {
    blocks.device().insert(names, list);
    blocks.told(text_of(told.getTenant()), names);
  } else {
    blocks.device().extend(parent, names, list);
  }
  if (told.getSwapped())
    blocks.swapped(names);
}

letter<schema::CacheHoldings> holdings(const tier_holdings& what) {
  return letter<schema::CacheHoldings>::make([&](schema::CacheHoldings::Builder b) {
    b.setDevice(what.device);
    b.setHost(what.host);
    b.setDisk(what.disk);
  });
}

result<prefix_pin> pin(prefix_cache& blocks, schema::CachePin::Reader ask) {
  if (ask.getSeconds() == 0 || ask.getSeconds() > longest_pin_seconds)
    return fail(errc::invalid_argument,
      "a pin lasts from 1 to " + std::to_string(longest_pin_seconds) + " seconds", "seconds");
  const auto until = prefix_cache::clock::now() + std::chrono::seconds(ask.getSeconds());
  return blocks.pin(text_of(ask.getTenant()), read_ids(ask.getTokens()), until);
}

void end_old_pins(cache_actor_state& state) {
  state.blocks->device().expire(prefix_cache::clock::now());
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
    {"pins", static_cast<double>(state.blocks->device().pins())},
    {"index_bytes", static_cast<double>(counters.index_bytes)},
    {"host_blocks", static_cast<double>(counters.host_blocks)},
    {"disk_blocks", static_cast<double>(counters.disk_blocks)},
    {"offload_waiting", static_cast<double>(counters.offload_waiting)},
    {"onboard_staged", static_cast<double>(counters.onboard_staged)},
  };
  return status_letter("cache", "ready", "", gauges);
}

} // namespace

cache_behaviour::behavior_type cache(self_pointer self, const std::shared_ptr<page_pool>& pool,
  const block_hasher& hasher, const prefix_cache_options& options, const tier_options& tiers,
  const std::shared_ptr<engine_counters>& counters) {
  // The cache must not keep its own actor alive.
  const auto post = [address = self->address()](tiered_cache::task what, std::chrono::milliseconds delay) {
    const auto to = caf::actor_cast<caf::actor>(address);
    if (to && delay.count() == 0)
      caf::anon_send(to, cache_task{std::move(what)});
    else if (to)
      caf::delayed_anon_send(to, delay, cache_task{std::move(what)});
  };
  auto tiered = tiered_cache::create(pool, hasher, options, tiers, counters, post);
  GODWIT_CHECK(tiered.has_value());
  self->state.blocks = std::move(*tiered);
  self->state.pool = pool;
  self->state.counters = counters;
  return {
    [self](const letter<schema::CacheLookup>& mail, const cache_client_actor& client) {
      look_up(self, mail.read(), client);
    },
    [self](const letter<schema::CacheInsert>& mail) {
      learn(*self->state.blocks, mail.read());
      count(self->state);
    },
    [self](const letter<schema::CacheRelease>& mail) {
      self->state.pool->release_blocks(read_ids(mail.read().getBlocks()));
      count(self->state);
    },
    [self](const letter<schema::CacheForgo>& mail) {
      for (const auto request : mail.read().getRequests())
        self->state.blocks->forgo(request);
    },
    [self](const letter<schema::CachePin>& mail) -> caf::result<letter<schema::CachePinned>> {
      end_old_pins(self->state);
      const auto made = pin(self->state.blocks->device(), mail.read());
      count(self->state);
      if (!made)
        return to_caf_error(made.error());
      return letter<schema::CachePinned>::make([&](schema::CachePinned::Builder b) {
        b.setPin(made->id);
        b.setBlocks(made->blocks);
      });
    },
    [self](const letter<schema::CacheUnpin>& mail) {
      self->state.blocks->device().unpin(text_of(mail.read().getTenant()), mail.read().getPin());
      count(self->state);
    },
    [self](const letter<schema::CacheEvict>& mail) {
      end_old_pins(self->state);
      auto promise = self->make_response_promise<letter<schema::CacheEvicted>>();
      self->state.blocks->evict(mail.read().getBlocks(), [promise](std::uint32_t blocks) mutable {
        promise.deliver(
          letter<schema::CacheEvicted>::make([&](schema::CacheEvicted::Builder b) { b.setBlocks(blocks); }));
      });
      count(self->state);
      return promise;
    },
    [self](const letter<schema::CacheProbe>& mail) {
      const auto ask = mail.read();
      return holdings(self->state.blocks->probe(text_of(ask.getTenant()), read_ids(ask.getTokens())));
    },
    [self](const letter<schema::CacheSuspend>& mail) {
      auto promise = self->make_response_promise<letter<schema::CacheHoldings>>();
      const auto ask = mail.read();
      self->state.blocks->suspend(text_of(ask.getTenant()), read_ids(ask.getTokens()),
        [promise](const result<tier_holdings>& left) mutable {
          if (left)
            promise.deliver(holdings(*left));
          else
            promise.deliver(to_caf_error(left.error()));
        });
      return promise;
    },
    [self](const letter<schema::CacheHold>& mail, const cache_client_actor& client) {
      const auto ask = mail.read();
      tier_load held;
      held.blocks = self->state.blocks->hold(text_of(ask.getTenant()), read_ids(ask.getTokens()));
      self->send(client, found(ask.getRequest(), held));
    },
    [self](const letter<schema::CacheRoom>& mail) {
      const auto freed = self->state.blocks->device().evict_unpinned(mail.read().getBlocks());
      count(self->state);
      return letter<schema::CacheEvicted>::make([&](schema::CacheEvicted::Builder b) { b.setBlocks(freed); });
    },
    [self](status_atom) {
      // Asked each second in a node: pins end in time although nothing else happens.
      end_old_pins(self->state);
      return describe(self->state);
    },
    // Nothing runs here.
    [](drain_atom) { return drained_letter(0); },
    [self](stop_atom) { self->quit(); },
    [](cache_task& task) { task.run(); },
  };
}

} // namespace godwit
