#include "actors/engine/engine.hpp"

#include "actors/cache/cache.hpp"
#include "actors/handover/prompt_desk.hpp"
#include "actors/handover/prompt_fetch.hpp"
#include "actors/trace/spawn_traced.hpp"

#include <caf/atom.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <random>

namespace godwit {
namespace {

/// Rows of a step that are always left for prompts.
std::size_t most_sequences(const model& model, const engine_options& options) {
  const std::size_t rows = model.max_rows();
  return std::clamp<std::size_t>(rows > prompt_floor ? rows - prompt_floor : 1, 1, options.sequences);
}

device_actor spawn_device(caf::actor_system& system, const std::shared_ptr<model>& model,
  const std::shared_ptr<page_pool>& pool, const block_hasher& hasher, const cache_actor& cache,
  const engine_options& options, const std::shared_ptr<engine_counters>& counters,
  const std::shared_ptr<recall_list>& recalled) {
  device_options wants;
  wants.recalled = recalled;
  wants.limits.budget = options.budget;
  wants.limits.chunk = options.chunk;
  wants.limits.inter_token = options.inter_token;
  wants.limits.rows = model->max_rows();
  wants.stall = options.stall;
  wants.same_thread = options.detached;
  if (options.detached)
    return spawn_traced<caf::detached>(system, device, model, pool, hasher, cache, wants, counters);
  return spawn_traced(system, device, model, pool, hasher, cache, wants, counters);
}

/// Of the pool, that blocks kept for others may take: what is computed needs room too.
constexpr double kept_share = 0.5;

std::uint64_t random_number() {
  thread_local std::random_device device;
  return (std::uint64_t{device()} << 32U) | device();
}

/// What both sides of a handover have of a worker.
struct handover_ground {
  cache_actor cache;
  cache_room_actor room;
  std::shared_ptr<page_pool> pool;
  cache_scope scope;
  std::shared_ptr<handover_counters> counters = std::make_shared<handover_counters>();
};

prompt_fetch_actor spawn_fetch(caf::actor_system& system, const handover_ground& ground,
  const block_hasher& hasher, const engine_options& options,
  const std::shared_ptr<const engine_counters>& counters) {
  return spawn_traced(system, prompt_fetch,
    fetch_parts{ground.cache, ground.room, ground.pool, hasher, ground.scope, options.handover.limits,
      options.handover.find, random_number, ground.counters, counters});
}

prompt_desk_actor spawn_desk(caf::actor_system& system, const handover_ground& ground,
  const prefill_actor& prefill, const engine_options& options) {
  lease_limits limits;
  limits.orders = options.queue;
  limits.blocks = static_cast<std::uint32_t>(kept_share * ground.pool->capacity_blocks());
  return spawn_traced(system, prompt_desk,
    desk_parts{prefill, ground.room, ground.pool, ground.scope, limits, ground.counters});
}

} // namespace

cache_scope scope_of(const model& model) {
  cache_scope scope;
  scope.fingerprint = model.fingerprint();
  scope.shape = model.shape().kv;
  return scope;
}

void configure_scheduler(caf::actor_system_config& config) {
  config.set("scheduler.policy", caf::atom("sharing"));
}

result<engine> spawn_worker(caf::actor_system& system, std::unique_ptr<model> loaded, const model_card& card,
  const engine_options& options) {
  const std::shared_ptr<model> model = std::move(loaded);
  const auto& shape = model->shape();
  const auto blocks =
    static_cast<std::uint32_t>((std::uint64_t{options.kv_tokens} + page_tokens - 1) / page_tokens);
  auto made = page_pool::create(shape.kv, blocks);
  if (!made)
    return fail(made);
  const std::shared_ptr<page_pool> pool = std::move(*made);

  request_limits requests;
  requests.vocabulary = shape.vocabulary;
  requests.context = card.context > 0 ? std::min(card.context, shape.context) : shape.context;
  requests.pool_tokens = blocks * page_tokens;

  const block_hasher hasher(
    options.cache_key ? *options.cache_key : identity_key::random(), scope_of(*model));
  const auto share = [&](double part) {
    return static_cast<std::uint32_t>(std::clamp(part, 0.0, 1.0) * blocks);
  };
  prefix_cache_options keeping;
  keeping.budget = share(options.cache_share);
  keeping.pin_quota = share(options.pin_share);

  const auto counters = std::make_shared<engine_counters>();
  engine made_engine;
  made_engine.counters = counters;
  made_engine.kv_blocks = blocks;
  auto tiers = options.tiers;
  if (!options.detached && !tiers.lanes)
    tiers.lanes = immediate_lanes;
  if (tiers.host_bytes > 0)
    if (const auto tried = host_tier::create(shape.kv.block_bytes(), tiers.host_bytes, keeping.doubles_at);
        !tried)
      return fail(tried);
  const auto cached = spawn_traced(system, cache, pool, hasher, keeping, tiers, counters);
  made_engine.cache = cached;
  const handover_ground ground{cached, cached, pool, scope_of(*model)};
  if (options.handover.desk || options.handover.find)
    made_engine.handover = ground.counters;
  if (options.handover.find)
    made_engine.fetch = spawn_fetch(system, ground, hasher, options, counters);
  const auto recalled = std::make_shared<recall_list>();
  made_engine.recalled = recalled;
  made_engine.device =
    spawn_device(system, model, pool, hasher, made_engine.cache, options, counters, recalled);
  made_engine.decode = spawn_traced(
    system, decode, made_engine.device, card.text, requests.longest(), counters, options.observer);

  prefill_options front;
  front.worker = options.worker;
  front.recalled = recalled;
  front.limits = {options.queue, options.prompts, most_sequences(*model, options), options.budget};
  front.requests = requests;
  front.fetch = made_engine.fetch;
  const auto& limits = options.handover.limits;
  front.elsewhere = limits.compute + std::chrono::seconds(10);
  const auto intake =
    spawn_traced(system, prefill, made_engine.device, made_engine.decode, made_engine.cache, front, counters);
  made_engine.prefill = intake;
  if (options.handover.find)
    made_engine.intake = intake;
  if (options.handover.desk)
    made_engine.desk = spawn_desk(system, ground, made_engine.prefill, options);
  caf::anon_send(made_engine.decode, join_atom::value, made_engine.prefill);
  caf::anon_send(made_engine.device, join_atom::value,
    caf::actor_cast<step_client_actor>(made_engine.prefill),
    caf::actor_cast<step_client_actor>(made_engine.decode));

  made_engine.capacity = static_cast<std::uint32_t>(options.queue + front.limits.sequences);
  return made_engine;
}

worker_handles as_worker(const engine& worker, const engine_options& options) {
  worker_handles out;
  out.load.name = options.worker;
  out.load.capacity = worker.capacity;
  out.prefill = worker.prefill;
  out.decode = worker.decode;
  out.intake = worker.intake;
  out.load.fetches = static_cast<bool>(worker.intake);
  out.own = true;
  return out;
}

router_options routing_of(const engine_options& options) {
  router_options out;
  out.weights = options.weights;
  out.block_tokens = page_tokens;
  out.min_elsewhere = options.handover.limits.min_tokens;
  out.seed = std::random_device{}();
  return out;
}

result<engine> spawn_engine(caf::actor_system& system, std::unique_ptr<model> model, const model_card& card,
  const engine_options& options) {
  auto made = spawn_worker(system, std::move(model), card, options);
  if (made)
    made->router = spawn_router(system, card.id, {as_worker(*made, options)}, routing_of(options));
  return made;
}

} // namespace godwit
