#pragma once

#include "actors/device/device_state.hpp"
#include "actors/device/same_thread.hpp"
#include "actors/device/status_letter.hpp"
#include "messages/catalogue.hpp"

#include <caf/typed_event_based_actor.hpp>

#include <chrono>
#include <memory>

namespace godwit {

struct device_options {
  step_limits limits;
  std::shared_ptr<recall_list> recalled = std::make_shared<recall_list>(); ///< prefill has it too
  std::chrono::milliseconds stall{2000}; ///< a paused stream may lose its pages to any other after so long
  bool same_thread = false;              ///< prefill and decode answer a step's result on the device's thread
};

/// The device with its own timer.
using device_behaviour = device_actor::extend<caf::reacts_to<tick_atom>>;

/// State of the device actor.
struct device_actor_state {
  std::unique_ptr<device_state> device;
  std::shared_ptr<engine_counters> counters;
  cache_actor cache;
  step_client_actor prefill;
  step_client_actor decode;
  std::unique_ptr<same_thread> roles; ///< where they answer; null: on the scheduler
  drain_waiters drain;
  bool timer = false; ///< a tick is on its way
  std::uint64_t steps_at_tick = 0;
  const char* name = "device";
};

/// Runs the model. Steps are long: give it a thread of its own (`caf::detached`).
/// @param cache learns of every block that was computed, and is asked for some when the pool is exhausted
device_behaviour::behavior_type device(device_behaviour::stateful_pointer<device_actor_state> self,
  std::shared_ptr<model> model, std::shared_ptr<page_pool> pool, const block_hasher& hasher,
  const cache_actor& cache, const device_options& options, std::shared_ptr<engine_counters> counters);

} // namespace godwit
