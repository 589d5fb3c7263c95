#pragma once

#include "actors/cache/block_identity.hpp"
#include "actors/device/status_letter.hpp"
#include "actors/handover/handover_counters.hpp"
#include "actors/handover/lease_book.hpp"
#include "actors/handover/transfer_seals.hpp"
#include "actors/prefill/request_watch.hpp"
#include "kernels/memory/page_pool.hpp"
#include "messages/catalogue_handover.hpp"

#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <map>
#include <memory>

namespace godwit {

/// What a desk works with: the prefill and the cache of one device, its pages, and what its blocks stand for.
struct desk_parts {
  prefill_actor prefill;
  cache_room_actor room; ///< its cache
  std::shared_ptr<page_pool> pool;
  cache_scope scope;
  lease_limits limits;
  std::shared_ptr<handover_counters> counters;
};

/// The desk as the parts of its worker see it, too.
using prompt_desk_behaviour = prompt_desk_actor::extend_with<generation_sink_actor, placement_actor,
  cache_client_actor>::extend<caf::reacts_to<tick_atom>>;

/// State of the desk.
struct prompt_desk_state {
  struct order {
    caf::typed_response_promise<letter<schema::PromptReady>> promise;
    transfer_seals seals;
    std::uint32_t cached = 0; ///< tokens
    bool answered = false;
  };

  desk_parts parts;
  std::unique_ptr<lease_book> book;
  std::map<std::uint64_t, order> orders;       ///< by transfer
  std::map<request_id, std::uint64_t> looking; ///< transfers whose blocks the cache is asked for
  request_watch watched;                       ///< who placed them, by transfer
  drain_waiters drain;
  bool timer = false;
  const char* name = "prompts";
};

/// Computes prompts for other nodes: each is a generation of one token on its own worker, whose blocks are
/// then held until they were fetched. Ends with its prefill.
prompt_desk_behaviour::behavior_type prompt_desk(
  prompt_desk_behaviour::stateful_pointer<prompt_desk_state> self, const desk_parts& parts);

} // namespace godwit
