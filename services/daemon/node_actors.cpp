#include "services/daemon/node_actors.hpp"

#include "actors/directory/directory.hpp"
#include "actors/node/node.hpp"
#include "actors/supervisor/supervisor.hpp"
#include "actors/tokenizer/actor.hpp"
#include "services/daemon/meters.hpp"

#include <caf/send.hpp>

#include <algorithm>
#include <atomic>
#include <random>
#include <stdexcept>

namespace godwit {

namespace {

/// Ids of requests: one sequence for sessions and completions.
request_id next_request() {
  static std::atomic<request_id> last{0};
  return ++last;
}

std::uint64_t random_number() {
  thread_local std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

std::int64_t unix_seconds(const time_source& time) {
  return time.wall_ms() / 1000;
}

/// For one part: the directory takes the whole deadline for turns that do not end.
std::chrono::milliseconds drain_timeout(const config& settings) {
  return settings.drain_deadline + std::chrono::seconds(10);
}

std::vector<std::string> roles_of(const config& settings) {
  if (settings.roles == std::vector<std::string>{"all"})
    return {"gateway", "session", "directory", "tokenizer", "router", "prefill", "decode", "device", "cache"};
  return settings.roles;
}

} // namespace

node_actors::node_actors(node_ingredients from) : from_(std::move(from)), time_(system_time()) {}

result<std::shared_ptr<node_actors>> node_actors::start(caf::actor_system& system, node_ingredients from) {
  const std::shared_ptr<node_actors> self(new node_actors(std::move(from)));
  const auto& settings = self->from_.settings;
  if (const auto made = self->start_engine(system); !made)
    return fail(made);

  node_config about;
  about.name = node_name(settings.node);
  about.incarnation = self->from_.incarnation;
  about.roles = roles_of(settings);
  about.model = self->from_.model.card.id;
  about.started_at = unix_seconds(*self->time_);
  about.drain_timeout = drain_timeout(settings);
  self->node_ = spawn_node(system, about);

  supervisor_config watched;
  watched.node = self->node_;
  watched.time = self->time_;
  watched.drain_timeout = drain_timeout(settings);
  // The supervisor ends before this object's last owner does, since the daemon stops it first.
  watched.children = {
    {"device", [self](caf::actor_system& in) { return self->start_device(in); }, restart_when::always},
    {"router", [self](caf::actor_system&) -> common_actor { return self->engine_.router; },
      restart_when::always},
    {"tokenizer",
      [self](caf::actor_system& in) -> common_actor {
        self->tokenizer_ = spawn_tokenizer(in, self->from_.model.tokenizer, self->from_.model.chat_template);
        return self->tokenizer_;
      },
      restart_when::always},
    {"directory", [self](caf::actor_system& in) { return self->start_directory(in); }, restart_when::always},
  };
  self->supervisor_ = spawn_supervisor(system, std::move(watched));
  return self;
}

std::shared_ptr<const engine_counters> node_actors::counters() const {
  const std::lock_guard lock(mutex_);
  return engine_.counters;
}

result<void> node_actors::start_engine(caf::actor_system& system) {
  auto& source = from_.model;
  if (!source.model) {
    auto again = model::load(source.file, source.options);
    if (!again)
      return fail(again);
    source.model = std::move(*again);
  }
  engine_options options;
  options.worker = from_.settings.node;
  options.kv_tokens = from_.settings.kv_tokens;
  options.budget = from_.settings.step_tokens;
  options.chunk = from_.settings.chunk_tokens;
  options.inter_token = from_.settings.max_inter_token;
  options.sequences = from_.settings.max_sequences;
  options.queue = from_.settings.max_queue;
  options.cache_key = from_.cache_key;
  options.tiers.host_bytes = from_.settings.cache_host_bytes;
  options.tiers.cold = from_.cold;
  options.observer = std::make_shared<stream_meter>(from_.figures);
  auto made = spawn_engine(system, std::move(source.model), source.card, options);
  if (!made)
    return fail(made);
  const std::lock_guard lock(mutex_);
  engine_ = std::move(*made);
  engine_is_new_ = true;
  return {};
}

common_actor node_actors::start_device(caf::actor_system& system) {
  if (!engine_is_new_) {
    from_.out->error("the device has ended: its model is loaded again");
    if (const auto made = start_engine(system); !made)
      throw std::runtime_error(made.error().message);
  }
  engine_is_new_ = false;
  caf::anon_send(node_, join_atom::value, std::string("cache"), common_actor(engine_.cache));
  caf::anon_send(node_, join_atom::value, std::string("decode"), common_actor(engine_.decode));
  caf::anon_send(node_, join_atom::value, std::string("prefill"), common_actor(engine_.prefill));
  return engine_.device;
}

common_actor node_actors::start_directory(caf::actor_system& system) {
  const auto& settings = from_.settings;
  directory_config config;
  config.limits.drain = settings.drain_deadline;
  auto& sessions = config.sessions;
  sessions.router = engine_.router;
  sessions.tokenizer = tokenizer_;
  sessions.cache = engine_.cache;
  sessions.records = from_.records;
  sessions.model = from_.model.card;
  sessions.node = node_name(settings.node);
  sessions.incarnation = from_.incarnation;
  sessions.time = time_;
  sessions.next_request = next_request;
  sessions.random = random_number;
  sessions.report = [out = from_.out](const session_id& session, const error& why) {
    out->warn("session", {{"session", session.value}, {"code", to_string(why.code)}, {"why", why.message}});
  };
  sessions.limits.tokens_per_record = settings.commit_tokens;
  directory_ = spawn_directory(system, std::move(config));
  start_gateway(system);
  return directory_;
}

void node_actors::start_gateway(caf::actor_system& system) {
  gateway_config config;
  config.directory = directory_;
  config.router = engine_.router;
  config.tokenizer = tokenizer_;
  config.node = node_;
  config.model = from_.model.card;
  config.metrics = [figures = from_.figures] { return figures->text(); };
  config.journal_trouble = from_.journal_trouble;
  config.next_request = next_request;
  config.random = random_number;
  config.now = [time = time_] { return unix_seconds(*time); };
  config.report = [out = from_.out](std::string_view call, const error& why) {
    out->warn("request", {{"call", call}, {"code", to_string(why.code)}, {"why", why.message}});
  };
  config.options.heartbeat =
    std::min<std::chrono::milliseconds>(from_.settings.heartbeat, std::chrono::seconds(15));
  const auto& settings = from_.settings;
  config.options.sampling = {.temperature = settings.default_temperature,
    .top_k = settings.default_top_k,
    .top_p = settings.default_top_p,
    .min_p = settings.default_min_p,
    .bias = {}};
  from_.front->set(make_gateway(system, std::move(config)));
}

} // namespace godwit
