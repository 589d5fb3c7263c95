#include "actors/handover/prompt_fetch.hpp"

#include "actors/device/step_letters.hpp"
#include "kernels/memory/block_copy.hpp"
#include "messages/actor_error.hpp"
#include "messages/text.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace godwit {
namespace {

using self_pointer = prompt_fetch_behaviour::stateful_pointer<prompt_fetch_state>;
using entry = prompt_fetch_state::entry;
using stage = prompt_transfer::stage;
using ready = letter<schema::PromptReady>;
using found = letter<schema::CacheFound>;

/// The cache only looks into its index.
constexpr auto cache_patience = std::chrono::seconds(2);

std::chrono::steady_clock::time_point now() {
  return std::chrono::steady_clock::now();
}

/// The entry of a request, if it is still about that transfer.
entry* find(self_pointer self, request_id request, std::uint64_t transfer) {
  const auto item = self->state.entries.find(request);
  const bool same = item != self->state.entries.end() && item->second.logic.transfer() == transfer;
  return same ? &item->second : nullptr;
}

void count(self_pointer self) {
  self->state.parts->counters->waiting = self->state.entries.size();
}

void answer(entry& which, std::uint32_t blocks) {
  if (std::exchange(which.answered, true))
    return;
  which.answer.deliver(ready::make([&](schema::PromptReady::Builder b) {
    b.setTransfer(which.logic.transfer());
    b.setBlocks(blocks);
  }));
}

/// Lets go of all that an entry has, here and on the other node.
void drop(self_pointer self, request_id request) {
  auto& state = self->state;
  auto node = state.entries.extract(request);
  if (node.empty())
    return;
  auto& which = node.mapped();
  answer(which, 0);
  if (which.desk)
    self->send(which.desk, letter<schema::PromptRelease>::make([&](schema::PromptRelease::Builder b) {
      b.initTransfers(1).set(0, which.logic.transfer());
    }));
  state.parts->pool->release_blocks(which.logic.blocks());
  if (which.held)
    state.parts->pool->release_blocks(read_ids(which.held->read().getBlocks()));
  count(self);
}

/// Counts why the rest of a prompt is computed here, once.
void blame(self_pointer self, entry& which, errc code) {
  if (std::exchange(which.blamed, true))
    return;
  auto& counters = *self->state.parts->counters;
  switch (code) {
  case errc::deadline:
    ++counters.late;
    break;
  case errc::peer_lost:
  case errc::not_found:
    ++counters.lost;
    break;
  default:
    ++counters.refused;
  }
}

/// What the cache has found goes on to whoever asked.
/// @param waiting blocks that are there if only there were room
void pass_on(self_pointer self, const found& mail, std::uint32_t waiting) {
  auto& state = self->state;
  const auto from = mail.read();
  const auto client = state.lookups.find(from.getRequest());
  if (client == state.lookups.end())
    return state.parts->pool->release_blocks(read_ids(from.getBlocks()));
  if (waiting == from.getWaiting()) {
    self->send(client->second, mail);
  } else {
    self->send(client->second, found::make([&](schema::CacheFound::Builder b) {
      b.setRequest(from.getRequest());
      b.setBlocks(from.getBlocks());
      b.setFirst(from.getFirst());
      b.setHost(from.getHost());
      b.setDisk(from.getDisk());
      b.setWaiting(waiting);
    }));
  }
  if (from.getLoading() == 0)
    state.lookups.erase(client);
}

/// The same when blocks of another node follow.
void announce(self_pointer self, const found& mail, std::uint32_t elsewhere) {
  auto& state = self->state;
  const auto from = mail.read();
  const auto client = state.lookups.find(from.getRequest());
  if (client == state.lookups.end())
    return state.parts->pool->release_blocks(read_ids(from.getBlocks()));
  self->send(client->second, letter<schema::PromptBrought>::make([&](schema::PromptBrought::Builder b) {
    b.setRequest(from.getRequest());
    b.setBlocks(from.getBlocks());
    b.setFirst(from.getFirst());
    b.setHost(from.getHost());
    b.setDisk(from.getDisk());
    b.setElsewhere(elsewhere);
    b.setPatienceMs(static_cast<std::uint32_t>(state.parts->limits.bring.count()));
  }));
}

/// Goes on without the other node.
void give_up(self_pointer self, request_id request, errc code) {
  const auto item = self->state.entries.find(request);
  if (item == self->state.entries.end())
    return;
  blame(self, item->second, code);
  if (const auto held = std::exchange(item->second.held, std::nullopt))
    pass_on(self, *held, held->read().getWaiting());
  drop(self, request);
}

// --- the order ---

void arm(self_pointer self) {
  if (!std::exchange(self->state.timer, true))
    self->delayed_send(self, self->state.parts->limits.lease / 3, tick_atom::value);
}

void computed(
  self_pointer self, request_id request, std::uint64_t transfer, schema::PromptReady::Reader said) {
  auto* which = find(self, request, transfer);
  if (which == nullptr)
    return;
  if (said.getTransfer() != transfer || !which->logic.computed(said.getBlocks(), said.getCachedTokens()))
    return give_up(self, request, errc::not_found);
  answer(*which, said.getBlocks());
  arm(self);
}

void order(
  self_pointer self, request_id request, entry& which, const std::string& source, std::int32_t priority) {
  auto& state = self->state;
  const auto& parts = *state.parts;
  const auto desk = parts.find(source);
  if (!desk)
    return give_up(self, request, errc::unavailable);
  which.desk = *desk;
  ++parts.counters->orders;
  const auto& logic = which.logic;
  which.seals.emplace(logic.transfer(), logic.salt(), parts.scope, logic.tenant(), logic.tokens());
  const auto mail = letter<schema::PromptOrder>::make([&](schema::PromptOrder::Builder b) {
    b.setTransfer(logic.transfer());
    b.setSalt(logic.salt());
    b.setTenant(text_view(logic.tenant()));
    write_ids(b.initTokens(static_cast<unsigned>(logic.order().size())), logic.order());
    b.setPriority(priority);
    b.setLeaseMs(static_cast<std::uint32_t>(parts.limits.lease.count()));
  });
  self->request(which.desk, parts.limits.compute, mail, caf::actor_cast<common_actor>(self))
    .then([self, request, transfer = logic.transfer()](
            const ready& said) { computed(self, request, transfer, said.read()); },
      [self, request, transfer = logic.transfer()](const caf::error& why) {
        if (find(self, request, transfer) != nullptr)
          give_up(self, request, from_caf_error(why).code);
      });
}

caf::result<ready> take(
  self_pointer self, const letter<schema::GenerateRequest>& mail, const std::string& source) {
  auto& state = self->state;
  const auto ask = mail.read();
  const auto request = ask.getRequest();
  // One of an earlier life of the request's number.
  drop(self, request);
  auto promise = self->make_response_promise<ready>();
  const auto transfer = std::max<std::uint64_t>(state.parts->random(), 1);
  const auto item = state.entries
                      .emplace(request, entry{prompt_transfer(transfer, state.parts->random(),
                                                text_of(ask.getTenant()), read_ids(ask.getTokens())),
                                          promise})
                      .first;
  count(self);
  const auto probed = [self, request, transfer, source, priority = ask.getPriority()](std::uint32_t known) {
    auto* which = find(self, request, transfer);
    if (which == nullptr)
      return;
    if (which->logic.probed(known, self->state.parts->limits))
      return order(self, request, *which, source, priority);
    ++self->state.parts->counters->short_prompts;
    drop(self, request);
  };
  const auto& logic = item->second.logic;
  self
    ->request(state.parts->cache, cache_patience,
      letter<schema::CacheProbe>::make([&](schema::CacheProbe::Builder b) {
        b.setTenant(text_view(logic.tenant()));
        write_ids(b.initTokens(static_cast<unsigned>(logic.tokens().size())), logic.tokens());
      }))
    .then(
      [probed](const letter<schema::CacheHoldings>& has) {
        const auto tiers = has.read();
        probed(std::max({tiers.getDevice(), tiers.getHost(), tiers.getDisk()}));
      },
      [probed](const caf::error&) { probed(0); });
  return promise;
}

// --- the blocks ---

/// All that will come has come: the blocks are the cache's, and the request's.
void bring(self_pointer self, request_id request, entry& which) {
  auto& state = self->state;
  auto& parts = *state.parts;
  auto& logic = which.logic;
  const auto good = logic.good();
  const auto blocks = logic.blocks().first(good);
  parts.counters->brought_blocks += good;
  parts.counters->brought_bytes += good * parts.pool->shape().block_bytes();
  if (good == logic.blocks().size()) {
    ++parts.counters->brought_prompts;
    parts.counters->transfer_nanoseconds += static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now() - which.since).count());
  }
  // drop() releases one reference of each; the cache and the request get one of the good ones.
  parts.pool->retain_blocks(blocks);
  const auto client = state.lookups.extract(request);
  if (good > 0) {
    parts.pool->retain_blocks(blocks);
    block_identity parent;
    if (logic.first() > 0) {
      std::vector<block_identity> names(logic.first());
      const auto before = logic.tokens_of({0, logic.first()});
      parts.hasher.chain(parts.hasher.root(logic.tenant()), before, names);
      parent = names.back();
    }
    self->send(parts.cache, letter<schema::CacheInsert>::make([&](schema::CacheInsert::Builder b) {
      b.setTenant(text_view(logic.tenant()));
      const auto tokens = logic.tokens_of({logic.first(), good});
      write_ids(b.initTokens(static_cast<unsigned>(tokens.size())), tokens);
      write_ids(b.initBlocks(good), blocks);
      b.setParentLow(parent.low);
      b.setParentHigh(parent.high);
    }));
  }
  if (client.empty())
    parts.pool->release_blocks(blocks);
  else
    self->send(client.mapped(), letter<schema::PromptBrought>::make([&](schema::PromptBrought::Builder b) {
      b.setRequest(request);
      b.setFirst(logic.first());
      write_ids(b.initBlocks(good), blocks);
      b.setHost(good);
      b.setComputed(logic.fresh());
    }));
  drop(self, request);
}

/// Copies blocks that came, as far as they check. @returns how many
std::uint32_t fill(
  self_pointer self, entry& which, block_range asked, const letter<schema::PromptBlocks>& mail) {
  auto& parts = *self->state.parts;
  const auto said = mail.read();
  const auto& pages = mail.attachments();
  if (said.getTransfer() != which.logic.transfer() || said.getFirst() != asked.first)
    return 0;
  const auto count =
    std::min({asked.count, said.getSeals().size(), static_cast<std::uint32_t>(pages.size())});
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto seal = said.getSeals()[i];
    const block_seal read{{seal.getNameLow(), seal.getNameHigh()}, seal.getCheckLow(), seal.getCheckHigh()};
    const auto into = block_contents(*parts.pool, which.logic.block(asked.first + i));
    if (pages[i]->size() != into.size() || !which.seals->checks(asked.first + i, read, *pages[i]))
      return i;
    std::memcpy(into.data(), pages[i]->data(), into.size());
  }
  return count;
}

void ask_more(self_pointer self, request_id request, entry& which);

void came(self_pointer self, request_id request, entry& which, block_range asked, std::uint32_t good) {
  which.logic.came(asked, good);
  ask_more(self, request, which);
  if (which.logic.finished())
    bring(self, request, which);
}

void ask_more(self_pointer self, request_id request, entry& which) {
  const auto& parts = *self->state.parts;
  const auto transfer = which.logic.transfer();
  while (const auto range = which.logic.next())
    self
      ->request(which.desk, parts.limits.fetch,
        letter<schema::PromptFetch>::make([&](schema::PromptFetch::Builder b) {
          b.setTransfer(transfer);
          b.setFirst(range->first);
          b.setCount(range->count);
        }))
      .then(
        [self, request, transfer, asked = *range](const letter<schema::PromptBlocks>& mail) {
          auto* same = find(self, request, transfer);
          if (same == nullptr)
            return;
          const auto good = fill(self, *same, asked, mail);
          self->state.parts->counters->damaged_blocks += asked.count - good;
          came(self, request, *same, asked, good);
        },
        [self, request, transfer, asked = *range](const caf::error& why) {
          auto* same = find(self, request, transfer);
          if (same == nullptr)
            return;
          blame(self, *same, from_caf_error(why).code);
          came(self, request, *same, asked, 0);
        });
}

/// So many blocks of the pool, all or none; one is left for each sequence that runs, so that none loses its
/// pages with its next token because of a prompt that has not even begun.
std::uint32_t room_for(const fetch_parts& parts, std::uint32_t blocks) {
  return blocks + static_cast<std::uint32_t>(parts.engine->sequences.load()) + 1;
}

std::vector<block_id> allocate(const fetch_parts& parts, std::uint32_t blocks) {
  std::vector<block_id> out;
  if (parts.pool->free_blocks() < room_for(parts, blocks))
    return out;
  while (out.size() < blocks) {
    const auto block = parts.pool->allocate_block();
    if (!block) { // the device was faster
      parts.pool->release_blocks(out);
      return {};
    }
    out.push_back(*block);
  }
  return out;
}

/// The cache has made room, or could not.
void begin(self_pointer self, request_id request, entry& which, std::uint32_t missing) {
  auto& parts = *self->state.parts;
  auto blocks = allocate(parts, missing);
  const auto held = std::exchange(which.held, std::nullopt);
  if (blocks.empty()) {
    // The device makes room for it, as for what is in a lower tier, and then it is looked up again.
    ++parts.counters->no_room;
    which.logic.no_room();
    return pass_on(self, *held, missing);
  }
  const auto bytes = parts.pool->shape().block_bytes();
  const auto each = std::max<std::uint64_t>(parts.limits.request_bytes / bytes, 1);
  which.logic.begin(
    std::move(blocks), static_cast<std::uint32_t>(std::min<std::uint64_t>(each, 256)), parts.limits.requests);
  which.since = now();
  announce(self, *held, missing);
  ask_more(self, request, which);
}

void make_room(self_pointer self, request_id request, entry& which, std::uint32_t missing) {
  auto& parts = *self->state.parts;
  const auto wanted = room_for(parts, missing);
  const auto free = parts.pool->free_blocks();
  if (free >= wanted || wanted > parts.pool->capacity_blocks())
    return begin(self, request, which, missing);
  const auto then = [self, request, transfer = which.logic.transfer(), missing] {
    if (auto* same = find(self, request, transfer); same != nullptr && same->held)
      begin(self, request, *same, missing);
  };
  self
    ->request(parts.room, cache_patience,
      letter<schema::CacheRoom>::make([&](schema::CacheRoom::Builder b) { b.setBlocks(wanted - free); }))
    .then([then](const letter<schema::CacheEvicted>&) { then(); }, [then](const caf::error&) { then(); });
}

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

/// Tells the other nodes that what they keep is still wanted.
void renew(self_pointer self) {
  auto& state = self->state;
  state.timer = false;
  for (auto& [request, which] : state.entries) {
    const auto at = which.logic.at();
    if (at != stage::ready && at != stage::looking && at != stage::room)
      continue;
    arm(self);
    self
      ->request(which.desk, state.parts->limits.fetch,
        letter<schema::PromptFetch>::make(
          [&which = which](schema::PromptFetch::Builder b) { b.setTransfer(which.logic.transfer()); }))
      .then([](const letter<schema::PromptBlocks>&) {},
        [self, number = request, transfer = which.logic.transfer()](const caf::error& why) {
          // While blocks are fetched, the questions for them tell how it is.
          const auto* same = find(self, number, transfer);
          if (same != nullptr && same->logic.at() != stage::fetching)
            give_up(self, number, from_caf_error(why).code);
        });
  }
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
