#pragma once

#include "actors/cache/block_identity.hpp"
#include "actors/device/engine_counters.hpp"
#include "actors/device/status_letter.hpp"
#include "actors/handover/handover_counters.hpp"
#include "actors/handover/prompt_transfer.hpp"
#include "actors/handover/transfer_seals.hpp"
#include "kernels/memory/page_pool.hpp"
#include "messages/catalogue_handover.hpp"

#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace godwit {

/// What brings prompts works with: the cache and the pages of one device, and the way to other nodes' desks.
struct fetch_parts {
  cache_actor cache;
  cache_room_actor room; ///< the same cache
  std::shared_ptr<page_pool> pool;
  block_hasher hasher; ///< of the cache here
  cache_scope scope;
  transfer_limits limits;
  /// The desk of a node; nothing: it is not there. Called on this actor's thread.
  std::function<std::optional<prompt_desk_actor>(const std::string&)> find;
  std::function<std::uint64_t()> random; ///< numbers for transfers
  std::shared_ptr<handover_counters> counters;
  std::shared_ptr<const engine_counters> engine;
};

/// It with its own timer.
using prompt_fetch_behaviour = prompt_fetch_actor::extend<caf::reacts_to<tick_atom>>;

/// State of the actor that brings prompts.
struct prompt_fetch_state {
  using promise = caf::typed_response_promise<letter<schema::PromptReady>>;

  struct entry {
    prompt_transfer logic;
    promise answer;
    bool answered = false;
    bool blamed = false;         ///< what failed first is counted
    prompt_desk_actor desk = {}; ///< from the order on
    std::optional<transfer_seals> seals = {};
    std::optional<letter<schema::CacheFound>> held = {}; ///< the cache's answer, until there is room
    std::chrono::steady_clock::time_point since = {};    ///< the first question for blocks
  };

  std::unique_ptr<fetch_parts> parts;
  std::map<request_id, entry> entries;
  std::map<request_id, prompt_client_actor> lookups; ///< that go through here
  bool timer = false;
  const char* name = "fetch";
};

/// Has prompts computed by other nodes and brings their blocks. Whatever fails on the way ends with fewer
/// blocks, perhaps none, and is counted: what is missing is computed here.
prompt_fetch_behaviour::behavior_type prompt_fetch(
  prompt_fetch_behaviour::stateful_pointer<prompt_fetch_state> self, const fetch_parts& parts);

} // namespace godwit
