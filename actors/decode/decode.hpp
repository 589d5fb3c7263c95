#pragma once

#include "actors/decode/decode_set.hpp"
#include "actors/decode/stream_observer.hpp"
#include "actors/device/engine_counters.hpp"
#include "actors/device/status_letter.hpp"
#include "messages/catalogue.hpp"

#include <caf/typed_event_based_actor.hpp>

#include <chrono>
#include <memory>
#include <unordered_map>

namespace godwit {

/// State of the decode actor.
struct decode_actor_state {
  /// Who is told of a request.
  struct listeners {
    generation_sink_actor sink;
    placement_actor placement;
    std::chrono::steady_clock::time_point since; ///< it was accepted, or got its last token
    bool started = false;                        ///< it got its first token
  };

  std::unique_ptr<decode_set> set;
  std::unordered_map<request_id, listeners> told;
  std::shared_ptr<engine_counters> counters;
  std::shared_ptr<stream_observer> observer; ///< may be null
  device_actor device;
  prefill_actor prefill;
  drain_waiters drain;
  step_number seen = 0;
  bool outstanding = false; ///< a submission with rows has no result yet
  const char* name = "decode";
};

/// Runs the streams of a worker: one token each in every step, batches to the consumers under their credit.
/// @param longest tokens at which a sequence is complete
/// @param observer may be null
decode_actor::behavior_type decode(decode_actor::stateful_pointer<decode_actor_state> self,
  const device_actor& device, std::shared_ptr<const token_text> vocabulary, std::uint32_t longest,
  std::shared_ptr<engine_counters> counters, std::shared_ptr<stream_observer> observer);

} // namespace godwit
