#pragma once

#include "actors/device/status_letter.hpp"
#include "actors/router/router_state.hpp"
#include "messages/catalogue_handover.hpp"

#include <caf/typed_event_based_actor.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace caf {
class actor_system;
}

namespace godwit {

/// A worker that the router may choose.
struct worker_handles {
  worker_load load; ///< name and capacity
  prefill_actor prefill;
  decode_actor decode;
  bool own = false;         ///< it ends with the router
  intake_actor intake = {}; ///< of one whose load says that it fetches
};

/// Is told of workers as they come. That they go it sees itself.
using worker_desk_actor = caf::typed_actor<
  // A worker may be chosen from now on, in place of an earlier one of that name, whose requests end.
  caf::reacts_to<join_atom, letter<schema::WorkerJoin>, prefill_actor, decode_actor>,
  // The same of one that can have prompts computed by other nodes.
  caf::reacts_to<join_atom, letter<schema::WorkerJoin>, prefill_actor, decode_actor, intake_actor>,
  // A node that computes prompts for others is there, or no more.
  caf::reacts_to<letter<schema::PromptSource>>>;

/// The router as its workers, and those who bring them, see it, too.
using router_behaviour = router_actor::extend_with<placement_actor, worker_desk_actor>;

/// State of the router actor.
struct router_actor_state {
  std::unique_ptr<router_state> placed;
  std::vector<worker_handles> workers;
  std::vector<unsigned> alive; ///< by worker: parts that still run
  std::unordered_map<request_id, generation_sink_actor> sinks;
  std::uint64_t turned_away = 0; ///< workers beyond the limit
  drain_waiters drain;
  const char* name = "router";
};

/// Places requests on workers, passes credits and cancels on, and cancels what a consumer leaves behind. A
/// request that a worker refuses before it has begun (it drains, or is full) is placed on another one. A long
/// prompt of a worker that fetches may be computed by another node, which the worker sees to. If a worker
/// dies, the router ends its streams. Tokens go from the worker to the sink and may be there before the
/// answer to the request is.
router_behaviour::behavior_type router(router_behaviour::stateful_pointer<router_actor_state> self,
  const std::string& model, const std::vector<worker_handles>& workers, const router_options& options);

/// Starts a router. Without workers it answers `unavailable` until one joins.
/// @param model that is served, as clients name it
router_behaviour spawn_router(caf::actor_system& system, const std::string& model,
  const std::vector<worker_handles>& workers, const router_options& options);

/// What a router is told of a node that computes prompts.
letter<schema::PromptSource> prompt_source(const std::string& name, bool there);

/// What a worker says when it joins a router.
letter<schema::WorkerJoin> worker_join(const worker_load& load);

} // namespace godwit
