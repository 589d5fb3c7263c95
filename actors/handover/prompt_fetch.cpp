#include "actors/handover/prompt_fetch.hpp"

#include "actors/device/step_letters.hpp"
#include "actors/handover/prompt_fetch_steps.hpp"

#include <caf/actor_cast.hpp>

#include <memory>

namespace godwit {
namespace {

using namespace fetching;

void look_up(self_pointer self, const letter<schema::CacheLookup>& mail, const prompt_client_actor& client) {
  auto& state = self->state;
  const auto request = mail.read().getRequest();
  const auto item = state.entries.find(request);
  if (item == state.entries.end())
    return self->send(state.parts->cache, mail, cache_client_actor(client));
  item->second.logic.look();
  state.lookups.insert_or_assign(request, client);
  self->send(state.parts->cache, mail, caf::actor_cast<cache_client_actor>(self));
}

letter<schema::CacheForgo> forgo_of(request_id request) {
  return letter<schema::CacheForgo>::make(
    [&](schema::CacheForgo::Builder b) { b.initRequests(1).set(0, request); });
}

/// The cache's answer to a look-up, or its second one.
void take_found(self_pointer self, const found& mail) {
  auto& state = self->state;
  const auto from = mail.read();
  const auto request = from.getRequest();
  if (!state.lookups.contains(request)) {
    // Nobody waits for it any more.
    state.parts->pool->release_blocks(read_ids(from.getBlocks()));
    if (from.getLoading() > 0)
      self->send(state.parts->cache, forgo_of(request));
    return;
  }
  const auto item = state.entries.find(request);
  if (from.getLoading() > 0 || item == state.entries.end()) {
    pass_on(self, mail, from.getWaiting());
    // What the tiers here have behind a gap comes while the gap is computed: nothing is left to be fetched.
    if (from.getGap() > 0)
      drop(self, request);
    return;
  }
  auto& which = item->second;
  const auto missing = which.logic.found(from.getFirst() + from.getBlocks().size());
  if (missing == 0) {
    // Meanwhile all of it is here.
    pass_on(self, mail, from.getWaiting());
    return drop(self, request);
  }
  if (from.getWaiting() > 0) {
    which.logic.no_room();
    return pass_on(self, mail, from.getWaiting() + missing);
  }
  which.held = mail;
  make_room(self, request, which, missing);
}

letter<schema::ActorStatus> describe(const prompt_fetch_state& state) {
  const auto& counters = *state.parts->counters;
  const gauge gauges[] = {
    {"prompts", static_cast<double>(state.entries.size())},
    {"lookups", static_cast<double>(state.lookups.size())},
    {"orders", static_cast<double>(counters.orders.load())},
    {"brought_blocks", static_cast<double>(counters.brought_blocks.load())},
  };
  return status_letter("fetch", "ready", "", gauges);
}

} // namespace

prompt_fetch_behaviour::behavior_type prompt_fetch(self_pointer self, const fetch_parts& parts) {
  self->state.parts = std::make_unique<fetch_parts>(parts);
  return {
    [self](const letter<schema::GenerateRequest>& mail, const std::string& source) {
      return take(self, mail, source);
    },
    [self](const letter<schema::CacheLookup>& mail, const prompt_client_actor& client) {
      look_up(self, mail, client);
    },
    [self](const letter<schema::CacheForgo>& mail) {
      // Behind the look-ups, on the way that those took.
      self->send(self->state.parts->cache, mail);
      for (const auto request : mail.read().getRequests()) {
        self->state.lookups.erase(request);
        drop(self, request);
      }
    },
    [self](const letter<schema::CacheFound>& mail) { take_found(self, mail); },
    [self](status_atom) { return describe(self->state); },
    // What it does is part of requests that prefill has.
    [](drain_atom) { return drained_letter(0); },
    [self](stop_atom) {
      while (!self->state.entries.empty())
        drop(self, self->state.entries.begin()->first);
      self->quit();
    },
    [self](tick_atom) { renew(self); },
  };
}

} // namespace godwit
