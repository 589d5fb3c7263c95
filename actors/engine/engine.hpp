#pragma once

#include "actors/cache/block_identity.hpp"
#include "actors/cache/tiered_cache.hpp"
#include "actors/decode/decode.hpp"
#include "actors/device/device.hpp"
#include "actors/device/engine_counters.hpp"
#include "actors/handover/handover_counters.hpp"
#include "actors/handover/prompt_transfer.hpp"
#include "actors/model_card.hpp"
#include "actors/prefill/prefill.hpp"
#include "actors/router/router.hpp"
#include "kernels/models/model.hpp"
#include "messages/catalogue_handover.hpp"
#include "messages/result.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace godwit {

/// Prompts that one worker computes for another.
struct handover_options {
  bool desk = false; ///< it computes prompts for others
  /// It has prompts computed by others: finds their desks. Null: it does not.
  std::function<std::optional<prompt_desk_actor>(const std::string&)> find = {};
  transfer_limits limits = {};
};

struct engine_options {
  std::string worker = "local";    ///< name of this worker in the router's answers
  std::uint32_t kv_tokens = 16384; ///< positions that the page pool holds, rounded up to blocks
  double cache_share = 1.0;        ///< of the pool, that the prefix cache may hold while nobody else needs it
  double pin_share = 0.25;         ///< of the pool, that one tenant may pin
  std::uint32_t budget = 256;      ///< tokens of one step
  std::uint32_t chunk = 64; ///< prompt tokens of a step that carries streams too: what they wait at most
  std::chrono::nanoseconds inter_token{
    0};                       ///< what a stream should wait for its next token at most; 0: `chunk` alone
  std::size_t queue = 256;    ///< requests that may wait
  std::size_t prompts = 8;    ///< prompts that are computed at the same time
  std::size_t sequences = 64; ///< prompts and running streams together
  std::chrono::milliseconds stall{
    2000}; ///< a stream that may not send loses its pages to others after so long
  std::optional<identity_key> cache_key = std::nullopt; ///< of block identities; without one a random key.
                                                        ///< The cold store's blocks are found by the key
                                                        ///< alone that they were written under
  tier_options tiers = {};                              ///< below the device
  handover_options handover = {};
  cost_weights weights = {};                      ///< of the router
  std::shared_ptr<stream_observer> observer = {}; ///< of the pace of streams; may be null
  bool detached = true; ///< the device gets a thread of its own; tests on CAF's test scheduler say no
};

/// The actors that serve one model on one device. They live until `router`, or without one `prefill`, is told
/// to stop, or one of them dies, which ends all of them but the router.
struct engine {
  router_actor router; ///< of spawn_engine
  prefill_actor prefill;
  decode_actor decode;
  device_actor device;
  cache_actor cache;
  prompt_desk_actor desk;   ///< of one that computes prompts for others
  prompt_fetch_actor fetch; ///< of one that has them computed by others
  intake_actor intake;      ///< of the same: its prefill
  std::shared_ptr<const engine_counters> counters;
  std::shared_ptr<const handover_counters> handover; ///< of a worker with a desk or a fetch
  std::shared_ptr<const recall_list> recalled;       ///< sequences that were cancelled
  std::uint32_t kv_blocks = 0;                       ///< of the page pool
  std::uint32_t capacity = 0;                        ///< requests that it takes, running and waiting
};

/// What the blocks of a model's KV have in common: who stores them has to know.
cache_scope scope_of(const model& model);

/// What the engine wants of the actor system: workers that wake up at once. CAF's default scheduler lets idle
/// workers sleep for up to 10 ms, which is a whole step.
void configure_scheduler(caf::actor_system_config& config);

/// Wires a worker: all of an engine but its router.
/// @param card its context is the longest sequence that is served; the model's own is the limit
/// @returns `resource_exhausted` or `invalid_argument` when there is no such page pool or host tier
result<engine> spawn_worker(caf::actor_system& system, std::unique_ptr<model> model, const model_card& card,
  const engine_options& options);

/// The worker of an engine as routers know it.
worker_handles as_worker(const engine& worker, const engine_options& options);

/// What a router needs to know of the engine's pages, with the engine's weights and a seed of its own.
router_options routing_of(const engine_options& options);

/// A worker with a router of its own. @returns as spawn_worker
result<engine> spawn_engine(caf::actor_system& system, std::unique_ptr<model> model, const model_card& card,
  const engine_options& options);

} // namespace godwit
