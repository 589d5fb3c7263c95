#include "actors/handover/prompt_desk.hpp"

#include "actors/device/step_letters.hpp"
#include "kernels/memory/block_copy.hpp"
#include "messages/actor_error.hpp"
#include "messages/text.hpp"

#include <caf/actor_cast.hpp>
#include <caf/system_messages.hpp>

#include <algorithm>
#include <utility>

namespace godwit {
namespace {

using self_pointer = prompt_desk_behaviour::stateful_pointer<prompt_desk_state>;
using ready = letter<schema::PromptReady>;

/// Prefill only queues a request before it answers.
constexpr auto prefill_patience = std::chrono::seconds(10);
/// Of one answer: the link carries no more in one message without others waiting for it.
constexpr std::size_t most_bytes = std::size_t{64} << 20;
constexpr std::uint32_t most_blocks = 256;

lease_book::moment now() {
  return lease_book::moment::clock::now();
}

void count(const prompt_desk_state& state) {
  state.parts.counters->open = state.book->size();
  state.parts.counters->kept_blocks = state.book->kept();
}

void arm(self_pointer self) {
  auto& state = self->state;
  const auto next = state.book->next();
  if (state.timer || next == lease_book::moment::max())
    return;
  state.timer = true;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - now());
  self->delayed_send(self, std::max(left, std::chrono::milliseconds(1)), tick_atom::value);
}

/// Lets go of what an order has left. @param why for whoever still waits for it
void settle(self_pointer self, const lease_book::remains& what, const error& why) {
  auto& state = self->state;
  if (what.transfer == 0)
    return;
  if (what.running != 0)
    self->send(
      state.parts.prefill, letter<schema::CancelRequest>::make([&](schema::CancelRequest::Builder b) {
        b.initRequests(1).set(0, what.running);
        b.setCause(schema::EndCause::CANCELLED);
      }));
  state.parts.pool->release_blocks(what.blocks);
  if (const auto found = state.orders.find(what.transfer); found != state.orders.end()) {
    if (!found->second.answered)
      found->second.promise.deliver(to_caf_error(why));
    state.orders.erase(found);
  }
  for (const auto& actor : state.watched.remove(what.transfer))
    self->demonitor(actor);
  count(state);
  state.drain.check(state.book->size());
}

void end(self_pointer self, std::uint64_t transfer, const error& why) {
  settle(self, self->state.book->release(transfer), why);
}

letter<schema::GenerateRequest> generation(request_id running, schema::PromptOrder::Reader order) {
  return letter<schema::GenerateRequest>::make([&](schema::GenerateRequest::Builder b) {
    b.setRequest(running);
    b.setTenant(order.getTenant());
    b.setTokens(order.getTokens());
    b.setPromptLength(order.getTokens().size());
    b.setMaxTokens(1);
    b.initSampling().setTemperature(0);
    b.setIgnoreEnd(true);
    b.setCredit(1);
    b.setPriority(order.getPriority());
  });
}

caf::result<ready> take(
  self_pointer self, const letter<schema::PromptOrder>& mail, const common_actor& client) {
  auto& state = self->state;
  const auto order = mail.read();
  const auto refuse = [&](const error& why) {
    ++state.parts.counters->turned_away;
    return to_caf_error(why);
  };
  if (state.drain.draining())
    return refuse({errc::draining, "this node takes no new prompts", {}, {}});
  if (order.getTokens().size() <= page_tokens || order.getTokens().size() % page_tokens != 1)
    return refuse({errc::invalid_argument, "an order is whole blocks and one token", "tokens", {}});
  const auto transfer = order.getTransfer();
  auto tokens = read_ids(order.getTokens());
  const auto tenant = text_of(order.getTenant());
  transfer_seals seals(transfer, order.getSalt(), state.parts.scope, tenant, tokens);
  const auto opened =
    state.book->open(transfer, tenant, std::move(tokens), std::chrono::milliseconds(order.getLeaseMs()));
  if (!opened)
    return refuse(opened.error());
  ++state.parts.counters->taken;
  auto promise = self->make_response_promise<ready>();
  state.orders.emplace(transfer, prompt_desk_state::order{promise, std::move(seals)});
  if (state.watched.add(transfer, client.address()))
    self->monitor(client);
  count(state);
  self
    ->request(state.parts.prefill, prefill_patience, generation(*opened, order),
      caf::actor_cast<generation_sink_actor>(self), caf::actor_cast<placement_actor>(self))
    .then([](const letter<schema::GenerateAccepted>&) {},
      [self, running = *opened](const caf::error& failure) {
        auto& book = *self->state.book;
        const auto which = book.transfer_of(running);
        if (which == 0)
          return;
        ++self->state.parts.counters->turned_away;
        end(self, which, from_caf_error(failure));
      });
  return promise;
}

/// A prompt is computed: its blocks are in the cache, as long as nobody needs their room.
void computed(self_pointer self, schema::TokenBatch::Reader batch) {
  auto& state = self->state;
  const auto running = batch.getRequest();
  const auto transfer = state.book->transfer_of(running);
  if (transfer == 0 || batch.getFinish() == schema::FinishReason::NONE)
    return;
  const bool done =
    batch.getFinish() == schema::FinishReason::LENGTH || batch.getFinish() == schema::FinishReason::STOP;
  state.book->computed(running);
  if (!done)
    return end(self, transfer,
      {batch.getErrorCode() != 0 ? static_cast<errc>(batch.getErrorCode()) : errc::cancelled,
        text_of(batch.getErrorMessage()), {}, {}});
  state.orders.at(transfer).cached = batch.getCachedTokens();
  state.looking.emplace(running, transfer);
  self->send(state.parts.room, letter<schema::CacheHold>::make([&](schema::CacheHold::Builder b) {
    b.setRequest(running);
    b.setTenant(state.book->tenant(transfer));
    const auto tokens = state.book->tokens(transfer);
    write_ids(b.initTokens(static_cast<unsigned>(tokens.size())), tokens);
  }),
    caf::actor_cast<cache_client_actor>(self));
}

void keep(self_pointer self, schema::CacheFound::Reader found) {
  auto& state = self->state;
  auto blocks = read_ids(found.getBlocks());
  const auto node = state.looking.extract(found.getRequest());
  if (node.empty())
    return state.parts.pool->release_blocks(blocks);
  const auto transfer = node.mapped();
  const auto all = blocks.size();
  const auto beyond = state.book->keep(transfer, std::move(blocks), now());
  state.parts.pool->release_blocks(beyond);
  const auto order = state.orders.find(transfer);
  if (order == state.orders.end())
    return;
  const auto kept = static_cast<std::uint32_t>(all - beyond.size());
  if (kept == 0)
    return end(
      self, transfer, {errc::resource_exhausted, "this node has no room to keep the blocks", {}, {}});
  order->second.answered = true;
  order->second.promise.deliver(ready::make([&](schema::PromptReady::Builder b) {
    b.setTransfer(transfer);
    b.setBlocks(kept);
    b.setCachedTokens(order->second.cached);
  }));
  count(state);
  arm(self);
}

caf::result<letter<schema::PromptBlocks>> give(self_pointer self, schema::PromptFetch::Reader ask) {
  auto& state = self->state;
  auto& pool = *state.parts.pool;
  const auto bytes = pool.shape().block_bytes();
  const block_range range{ask.getFirst(), ask.getCount()};
  if (range.count > most_blocks || (range.count > 1 && range.count * bytes > most_bytes))
    return to_caf_error({errc::too_large, "these are too many blocks for one answer", "count", {}});
  const auto blocks = state.book->fetch(ask.getTransfer(), range, now());
  if (!blocks)
    return to_caf_error(blocks.error());
  const auto& seals = state.orders.at(ask.getTransfer()).seals;
  std::vector<attachment> pages;
  std::vector<block_seal> all;
  for (std::uint32_t i = 0; i < range.count; ++i) {
    const auto from = block_contents(pool, (*blocks)[i]);
    pages.push_back(std::make_shared<const std::vector<std::byte>>(from.begin(), from.end()));
    all.push_back(seals.seal(range.first + i, *pages.back()));
  }
  state.parts.counters->given_blocks += range.count;
  state.parts.counters->given_bytes += range.count * bytes;
  return letter<schema::PromptBlocks>::make(
    [&](schema::PromptBlocks::Builder b) {
      b.setTransfer(ask.getTransfer());
      b.setFirst(range.first);
      auto list = b.initSeals(range.count);
      for (unsigned i = 0; i < list.size(); ++i) {
        list[i].setNameLow(all[i].name.low);
        list[i].setNameHigh(all[i].name.high);
        list[i].setCheckLow(all[i].check_low);
        list[i].setCheckHigh(all[i].check_high);
      }
    },
    std::move(pages));
}

const error& let_go() {
  static const error why{errc::cancelled, "nobody wants this prompt any more", {}, {}};
  return why;
}

void release(self_pointer self, std::span<const std::uint64_t> transfers) {
  for (const auto transfer : transfers) {
    self->state.parts.counters->released += self->state.book->known(transfer) ? 1 : 0;
    end(self, transfer, let_go());
  }
}

/// Nobody would answer those who wait.
void leave(self_pointer self) {
  std::vector<std::uint64_t> all;
  for (const auto& item : self->state.orders)
    all.push_back(item.first);
  for (const auto transfer : all)
    end(self, transfer, {errc::draining, "this node computes no more prompts", {}, {}});
  self->quit();
}

void on_down(self_pointer self, const caf::actor_addr& source) {
  if (source == self->state.parts.prefill)
    return leave(self);
  release(self, self->state.watched.of(source));
}

letter<schema::ActorStatus> describe(const prompt_desk_state& state) {
  const gauge gauges[] = {
    {"orders", static_cast<double>(state.book->size())},
    {"kept_blocks", static_cast<double>(state.book->kept())},
    {"watched", static_cast<double>(state.watched.size())},
  };
  return status_letter("prompts", state.drain.draining() ? "draining" : "ready", "", gauges);
}

} // namespace

prompt_desk_behaviour::behavior_type prompt_desk(self_pointer self, const desk_parts& parts) {
  auto& state = self->state;
  state.parts = parts;
  state.book = std::make_unique<lease_book>(parts.limits);
  self->monitor(parts.prefill);
  self->set_down_handler([self](const caf::down_msg& down) { on_down(self, down.source); });
  return {
    [self](const letter<schema::PromptOrder>& mail, const common_actor& client) {
      return take(self, mail, client);
    },
    [self](const letter<schema::PromptFetch>& mail) { return give(self, mail.read()); },
    [self](
      const letter<schema::PromptRelease>& mail) { release(self, read_keys(mail.read().getTransfers())); },
    [self](status_atom) { return describe(self->state); },
    [self](drain_atom) {
      auto promise = self->make_response_promise<letter<schema::Drained>>();
      self->state.drain.add(promise);
      self->state.drain.check(self->state.book->size());
      return promise;
    },
    [self](stop_atom) { leave(self); },
    [self](const letter<schema::TokenBatch>& mail) { computed(self, mail.read()); },
    // Where its requests are it knows.
    [](const letter<schema::WorkerReport>&) {},
    [self](const letter<schema::CacheFound>& mail) { keep(self, mail.read()); },
    [self](tick_atom) {
      self->state.timer = false;
      for (const auto& each : self->state.book->expire(now())) {
        ++self->state.parts.counters->expired;
        settle(self, each, let_go());
      }
      arm(self);
    },
  };
}

} // namespace godwit
