#pragma once

#include "actors/device/status_letter.hpp"
#include "actors/router/router_state.hpp"
#include "messages/catalogue.hpp"

#include <caf/typed_event_based_actor.hpp>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace godwit {

/// A worker that the router may choose.
struct worker_handles {
  worker_load load; ///< name and capacity
  prefill_actor prefill;
  decode_actor decode;
};

/// The router as its workers see it, too.
using router_behaviour = router_actor::extend_with<placement_actor>;

/// State of the router actor.
struct router_actor_state {
  std::unique_ptr<router_state> placed;
  std::vector<worker_handles> workers;
  std::vector<unsigned> alive; ///< by worker: parts that still run
  std::unordered_map<request_id, generation_sink_actor> sinks;
  drain_waiters drain;
  const char* name = "router";
};

/// Places requests on workers, passes credits and cancels on, and cancels what a consumer leaves behind. If a
/// worker dies, the router ends its streams. Tokens go from the worker to the sink and may be there before
/// the answer to the request is.
router_behaviour::behavior_type router(router_behaviour::stateful_pointer<router_actor_state> self,
  const std::string& model, const std::vector<worker_handles>& workers, const router_options& options);

} // namespace godwit
