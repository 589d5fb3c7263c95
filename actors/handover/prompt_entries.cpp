#include "actors/handover/prompt_fetch_steps.hpp"

#include "actors/device/step_letters.hpp"

#include <utility>

namespace godwit::fetching {

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

void give_up(self_pointer self, request_id request, errc code) {
  const auto item = self->state.entries.find(request);
  if (item == self->state.entries.end())
    return;
  blame(self, item->second, code);
  if (const auto held = std::exchange(item->second.held, std::nullopt))
    pass_on(self, *held, held->read().getWaiting());
  drop(self, request);
}

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

} // namespace godwit::fetching
