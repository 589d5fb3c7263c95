#pragma once

#include "actors/device/engine_counters.hpp"
#include "actors/device/recall_list.hpp"
#include "actors/device/status_letter.hpp"
#include "actors/prefill/prefill_queue.hpp"
#include "actors/prefill/request_check.hpp"
#include "actors/prefill/request_watch.hpp"
#include "messages/catalogue_handover.hpp"

#include <caf/typed_event_based_actor.hpp>

#include <chrono>
#include <memory>
#include <set>
#include <string>

namespace godwit {

struct prefill_options {
  std::string worker; ///< the name of this worker, as the router's answers show it
  prefill_limits limits;
  request_limits requests;
  std::shared_ptr<recall_list> recalled = std::make_shared<recall_list>(); ///< the device has it too
  prompt_fetch_actor fetch = {}; ///< has prompts computed elsewhere; null: all are computed here
  std::chrono::milliseconds elsewhere{75'000}; ///< how long it may take to say what came of a prompt
};

/// Prefill with its own timer; it takes requests whose prompt another node may compute, too.
using prefill_behaviour =
  prefill_actor::extend_with<intake_actor>::extend<caf::reacts_to<letter<schema::PromptBrought>>,
    caf::reacts_to<tick_atom>>;

/// State of the prefill actor.
struct prefill_actor_state {
  std::unique_ptr<prefill_queue> queue;
  prefill_options options;
  std::shared_ptr<engine_counters> counters;
  device_actor device;
  decode_actor decode;
  cache_actor cache;
  request_watch watched;
  std::set<request_id> elsewhere; ///< requests that `fetch` has something of
  drain_waiters drain;
  step_number seen = 0;
  bool outstanding = false; ///< a submission with rows has no result yet
  bool timer = false;
  const char* name = "prefill";
};

/// The front of a worker: queues prompts, looks them up in the cache, computes what is missing chunk by
/// chunk, and passes everything that concerns the stream on to decode. A request whose router or consumer is
/// lost ends, as if it had been cancelled with that cause.
prefill_behaviour::behavior_type prefill(prefill_behaviour::stateful_pointer<prefill_actor_state> self,
  const device_actor& device, const decode_actor& decode, const cache_actor& cache,
  const prefill_options& options, std::shared_ptr<engine_counters> counters);

} // namespace godwit
