#include "actors/handover/prompt_fetch_steps.hpp"

#include "actors/device/step_letters.hpp"
#include "actors/trace/trace_scope.hpp"
#include "messages/actor_error.hpp"
#include "messages/text.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <utility>

namespace godwit::fetching {

namespace {

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

} // namespace

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
  const auto probed = [self, request, transfer, source, priority = ask.getPriority(),
                        trace = current_trace()](std::uint32_t known) {
    auto* which = find(self, request, transfer);
    if (which == nullptr)
      return;
    const trace_scope scope(trace);
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

} // namespace godwit::fetching
