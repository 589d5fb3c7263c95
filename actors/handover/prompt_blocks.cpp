#include "actors/handover/prompt_fetch_steps.hpp"

#include "actors/device/step_letters.hpp"
#include "kernels/memory/block_copy.hpp"
#include "messages/actor_error.hpp"
#include "messages/text.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace godwit::fetching {

namespace {

std::chrono::steady_clock::time_point now() {
  return std::chrono::steady_clock::now();
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

} // namespace

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

} // namespace godwit::fetching
