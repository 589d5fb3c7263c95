#include "services/daemon/node_actors.hpp"

#include "actors/directory/directory.hpp"
#include "actors/tokenizer/actor.hpp"
#include "actors/trace/trace_scope.hpp"
#include "services/daemon/cache_survey.hpp"
#include "services/daemon/journal_sign.hpp"
#include "services/daemon/meters.hpp"
#include "services/daemon/node_mesh.hpp"

#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <atomic>
#include <random>
#include <stdexcept>

namespace godwit {

namespace {

std::uint64_t random_number() {
  thread_local std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

/// Ids of requests: one sequence for sessions and completions. It begins anywhere, so that two nodes which
/// place requests on one worker, or one node before and after a restart, do not use the same.
request_id next_request() {
  static std::atomic<request_id> last{random_number()};
  return ++last;
}

std::int64_t unix_seconds(const time_source& time) {
  return time.wall_ms() / 1000;
}

/// For one part: the directory takes the whole deadline for turns that do not end.
std::chrono::milliseconds drain_timeout(const config& settings) {
  return settings.drain_deadline + std::chrono::seconds(10);
}

letter<schema::WorkerJoin> join_of(const remote_worker& worker) {
  worker_load load;
  load.name = worker.node.value;
  load.capacity = worker.capacity;
  return worker_join(load);
}

/// Starts of the device read the model, those of the directory the journal: more of them than are too many
/// have to fit into the window, however long one takes.
constexpr restart_limits often{};
constexpr restart_limits slow_start{.window = std::chrono::minutes(10)};

/// For an answer of the only cache that there is: the sessions' own patience is what counts.
constexpr std::chrono::milliseconds own_cache{10'000};

/// For letters that are under way when the node leaves its mesh.
constexpr std::chrono::milliseconds farewell{500};

} // namespace

node_actors::node_actors(node_ingredients from) : from_(std::move(from)), time_(system_time()) {}

result<std::shared_ptr<node_actors>> node_actors::start(caf::actor_system& system, node_ingredients from) {
  const std::shared_ptr<node_actors> self(new node_actors(std::move(from)));
  const auto& settings = self->from_.settings;
  const auto& roles = self->from_.roles;
  if (roles.worker())
    if (const auto made = self->start_engine(system); !made)
      return fail(made);

  self->started_at_ = unix_seconds(*self->time_);
  self->node_ = spawn_node(system, self->about_this_node());
  self->make_places(system);
  if (self->from_.others)
    if (const auto joined = self->join_mesh(system); !joined) {
      self->stop(link::end_cause::none);
      return fail(joined);
    }

  supervisor_config watched;
  watched.node = self->node_;
  watched.time = self->time_;
  watched.drain_timeout = drain_timeout(settings);
  // The supervisor ends before this object's last owner does, since the daemon stops it first.
  watched.children = self->children();
  if (watched.children.empty())
    self->start_gateway(system);
  self->supervisor_ = spawn_supervisor(system, std::move(watched));
  return self;
}

node_config node_actors::about_this_node() {
  const auto weak = weak_from_this();
  node_config out;
  out.name = node_name(from_.settings.node);
  out.incarnation = from_.incarnation;
  if (from_.others)
    out.incarnation_now = [weak, own = from_.incarnation] {
      const auto self = weak.lock();
      return self && self->mesh_ ? std::to_string(self->mesh_->incarnation()) : own;
    };
  out.roles = from_.roles.names();
  out.model = from_.model.card.id;
  out.fingerprint = from_.model.card.fingerprint;
  out.version = from_.version;
  out.capacity = engine_.capacity;
  out.started_at = started_at_;
  out.leave = from_.leave;
  out.failed = [weak](const std::string& why) {
    const auto self = weak.lock();
    if (!self)
      return;
    {
      const std::lock_guard lock(self->mutex_);
      self->failed_ = true;
    }
    if (self->from_.failed)
      self->from_.failed(why);
  };
  out.drain_timeout = drain_timeout(from_.settings);
  return out;
}

void node_actors::make_places(caf::actor_system& system) {
  const auto& roles = from_.roles;
  if (roles.router)
    router_ = (router_place_ = {system, "router"}).handle();
  if (roles.tokenizer)
    tokenizer_ = (tokenizer_place_ = {system, "tokenizer"}).handle();
  if (roles.session)
    directory_ = (directory_place_ = {system, std::string(directory_part)}).handle();
  // A worker that is started again has another cache, whose pins have other numbers: the survey knows that.
  if (roles.session)
    survey_ = spawn_cache_survey(
      system,
      [weak = weak_from_this()] {
        const auto self = weak.lock();
        return self ? self->caches() : std::vector<cache_tiers_actor>();
      },
      from_.others ? survey_limits{} : survey_limits{.probe = own_cache});
}

std::vector<supervised> node_actors::children() {
  const auto self = shared_from_this();
  const auto& roles = from_.roles;
  std::vector<supervised> out;
  const std::size_t count = std::size_t{roles.worker()} + std::size_t{roles.router}
                            + std::size_t{roles.tokenizer} + std::size_t{roles.session};
  const auto add = [&](bool has, std::string name, auto begin, std::vector<std::string> uses,
                     restart_limits limits) {
    if (!has)
      return;
    auto start = [self, begin, name, count](caf::actor_system& in) {
      auto made = ((*self).*begin)(in);
      // The gateway stands on all of them, once: whatever is started anew later has its place already.
      if (self->started_.insert(name).second && self->started_.size() == count)
        self->start_gateway(in);
      return made;
    };
    // None of them ends of itself for a good reason, so none may stay ended.
    out.push_back({std::move(name), std::move(start), restart_when::always, std::move(uses), limits});
  };
  add(roles.worker(), "device", &node_actors::start_device, {}, slow_start);
  // The router knows its own node's worker as it is now; others' workers come by the mesh.
  add(roles.router, "router", &node_actors::start_router,
    roles.decode ? std::vector<std::string>{"device"} : std::vector<std::string>{}, often);
  add(roles.tokenizer, "tokenizer", &node_actors::start_tokenizer, {}, often);
  add(roles.session, std::string(directory_part), &node_actors::start_directory, {}, slow_start);
  return out;
}

result<void> node_actors::join_mesh(caf::actor_system& system) {
  auto options = std::move(*from_.others);
  options.capacity = engine_.capacity;
  const auto weak = weak_from_this();
  const bool shared = from_.settings.journal == journal_kind::postgres;
  if (from_.roles.session) {
    options.sessions = shared ? session_store::shared : session_store::own;
    options.started_at = started_at_;
    options.refused = [weak](const std::string& why) {
      if (const auto self = weak.lock())
        self->refuse_sessions(why);
    };
  }
  auto joined = mesh::start(system, std::move(options));
  if (!joined)
    return fail(joined);
  mesh_ = std::move(*joined);
  if (from_.roles.session) {
    sign_ = spawn_journal_sign(system, shared, [weak] {
      const auto self = weak.lock();
      if (!self)
        return std::string();
      const std::lock_guard lock(self->mutex_);
      return self->refused_;
    });
    caf::anon_send(node_, join_atom::value, std::string("journal"), sign_);
  }
  mesh_->offer("node", node_actor(node_));
  mesh_->offer("process", process_actor(node_));
  const auto& roles = from_.roles;
  for (const auto& needed : needed_of(roles)) {
    if (needed.offer == "router")
      router_ = mesh_->role<router_actor>(needed.offer);
    else if (needed.offer == "tokenizer")
      tokenizer_ = mesh_->role<tokenizer_actor>(needed.offer);
    else
      directory_ = mesh_->role<directory_actor>(needed.offer);
  }
  if (roles.session || roles.router)
    mesh_->watch_workers(
      [weak](const remote_worker& worker) {
        if (const auto self = weak.lock())
          self->take_worker(worker);
      },
      [weak](const node_name& node) {
        if (const auto self = weak.lock())
          self->lose_worker(node);
      });
  if (roles.router)
    mesh_->watch_prompts([weak](const node_name& node, bool there) {
      if (const auto self = weak.lock())
        self->take_prompt_node(node, there);
    });
  return {};
}

void node_actors::take_worker(const remote_worker& worker) {
  from_.out->info("worker", {{"node", worker.node.value}, {"capacity", std::uint64_t{worker.capacity}}});
  {
    const std::lock_guard lock(mutex_);
    workers_[worker.node] = worker;
    if (desk_)
      send_join(desk_, worker);
  }
  // A router that had no worker is of use now.
  mesh_->changed();
}

/// The router monitors it: this is for those that come later.
void node_actors::lose_worker(const node_name& node) {
  from_.out->info("worker", {{"node", node.value}, {"why", "it is there no more"}});
  const std::lock_guard lock(mutex_);
  workers_.erase(node);
}

std::vector<node_name> node_actors::workers() const {
  std::vector<node_name> out;
  const std::lock_guard lock(mutex_);
  for (const auto& [node, worker] : workers_)
    out.push_back(node);
  return out;
}

void node_actors::refuse_sessions(const std::string& why) {
  if (why.empty())
    from_.out->info(
      "sessions", {{"why", "no other node has the role session with another journal any more"}});
  else
    from_.out->error("this node must not have sessions", {{"why", why}});
  const std::lock_guard lock(mutex_);
  refused_ = why;
}

void node_actors::send_join(const worker_desk_actor& desk, const remote_worker& worker) const {
  if (worker.intake)
    caf::anon_send(desk, join_atom::value, join_of(worker), worker.prefill, worker.decode,
      mesh_->at<intake_actor>(worker.node, "intake"));
  else
    caf::anon_send(desk, join_atom::value, join_of(worker), worker.prefill, worker.decode);
}

void node_actors::take_prompt_node(const node_name& node, bool there) {
  from_.out->info("prompt node", {{"node", node.value}, {"there", std::uint64_t{there ? 1U : 0U}}});
  const std::lock_guard lock(mutex_);
  if (there)
    prompt_nodes_.insert(node);
  else
    prompt_nodes_.erase(node);
  if (desk_)
    caf::anon_send(desk_, prompt_source(node.value, there));
}

/// Of a node that is up: nobody waits for one that is not.
std::optional<prompt_desk_actor> node_actors::desk_of(const std::string& node) const {
  if (!is_up(node))
    return std::nullopt;
  return mesh_->at<prompt_desk_actor>(node_name(node), "prompts");
}

bool node_actors::is_up(const std::string& node) const {
  if (!mesh_)
    return false;
  const auto now = mesh_->figures();
  return std::any_of(now.peers.begin(), now.peers.end(), [&](const link::peer_status& peer) {
    return peer.node.value == node && peer.state == link::peer_state::up;
  });
}

void node_actors::drain() {
  if (!mesh_)
    return;
  {
    // Its own router is drained in its turn, but those of others would go on sending work.
    const std::lock_guard lock(mutex_);
    if (engine_.desk)
      caf::anon_send(engine_.desk, drain_atom::value);
    else if (engine_.prefill)
      caf::anon_send(engine_.prefill, drain_atom::value);
  }
  mesh_->drain();
}

void node_actors::stop(link::end_cause cause) {
  if (supervisor_)
    caf::anon_send(supervisor_, stop_atom::value);
  caf::anon_send(node_, stop_atom::value);
  if (sign_)
    caf::anon_send(sign_, stop_atom::value);
  if (survey_)
    caf::anon_send_exit(survey_, caf::exit_reason::user_shutdown); // or what it asked would keep it
  {
    // A router would do it, if there is one still.
    const std::lock_guard lock(mutex_);
    if ((failed_ || !desk_ || !from_.roles.decode) && engine_.prefill)
      caf::anon_send(engine_.prefill, stop_atom::value);
  }
  if (mesh_)
    mesh_->stop(cause, farewell);
  router_place_.close();
  tokenizer_place_.close();
  directory_place_.close();
  const std::lock_guard lock(mutex_);
  workers_.clear();
}

std::shared_ptr<const engine_counters> node_actors::counters() const {
  const std::lock_guard lock(mutex_);
  return engine_.counters;
}

std::shared_ptr<const handover_counters> node_actors::handover() const {
  const std::lock_guard lock(mutex_);
  return engine_.handover;
}

std::vector<cache_tiers_actor> node_actors::caches() const {
  std::vector<cache_tiers_actor> out;
  const std::lock_guard lock(mutex_);
  // What a node has that computes prompts for others is no session's to move.
  if (engine_.cache && from_.roles.decode)
    out.emplace_back(engine_.cache);
  for (const auto& [node, worker] : workers_)
    out.push_back(mesh_->at<cache_tiers_actor>(node, "cache"));
  return out;
}

std::vector<absent_role> node_actors::absent() const {
  std::vector<absent_role> out;
  for (const auto& [role, offer] : needed_of(from_.roles))
    if (const auto targets = mesh_->targets(offer); !targets || !targets->current())
      out.push_back({role, targets ? targets->refusal().message : std::string()});
  return out;
}

std::optional<process_actor> node_actors::process_of(const std::string& node) const {
  if (node.empty() || node == from_.settings.node)
    return process_actor(node_);
  if (!is_up(node))
    return std::nullopt;
  return mesh_->at<process_actor>(node_name(node), "process");
}

template <class Handle>
void node_actors::offer(const std::string& name, const Handle& actor) {
  if (mesh_)
    mesh_->offer(name, actor);
}

engine_options node_actors::options_of_engine() const {
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
  options.tiers.reuse = from_.settings.cache_offload_after;
  options.observer = std::make_shared<stream_meter>(from_.figures);
  options.handover.limits.min_tokens = from_.settings.handover_min_tokens;
  options.handover.limits.compute = from_.settings.handover_deadline;
  options.handover.desk = from_.roles.prompts_only();
  if (from_.others && from_.roles.streams_only())
    options.handover.find = [weak = weak_from_this()](const std::string& node) {
      const auto self = weak.lock();
      return self ? self->desk_of(node) : std::nullopt;
    };
  return options;
}

result<void> node_actors::start_engine(caf::actor_system& system) {
  auto& source = from_.model;
  if (!source.model) {
    auto again = model::load(source.file, source.options);
    if (!again)
      return fail(again);
    source.model = std::move(*again);
  }
  auto made = spawn_worker(system, std::move(source.model), source.card, options_of_engine());
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
  offer("cache", engine_.cache);
  if (engine_.desk) {
    caf::anon_send(node_, join_atom::value, std::string("prompts"), common_actor(engine_.desk));
    offer("prompts", engine_.desk);
    return engine_.device;
  }
  if (engine_.fetch) {
    caf::anon_send(node_, join_atom::value, std::string("fetch"), common_actor(engine_.fetch));
    offer("intake", engine_.intake);
  }
  offer("decode", engine_.decode);
  offer("prefill", engine_.prefill);
  return engine_.device;
}

common_actor node_actors::start_router(caf::actor_system& system) {
  const auto options = options_of_engine();
  std::vector<worker_handles> own;
  if (from_.roles.decode)
    own.push_back(as_worker(engine_, options));
  const auto made = spawn_router(system, from_.model.card.id, own, routing_of(options));
  router_place_.put(router_actor(made));
  {
    const std::lock_guard lock(mutex_);
    desk_ = made;
    for (const auto& [node, worker] : workers_)
      send_join(desk_, worker);
    for (const auto& node : prompt_nodes_)
      caf::anon_send(desk_, prompt_source(node.value, true));
    if (from_.roles.prompts_only())
      caf::anon_send(desk_, prompt_source(from_.settings.node, true));
  }
  offer("router", router_actor(made));
  return made;
}

common_actor node_actors::start_tokenizer(caf::actor_system& system) {
  const auto made = spawn_tokenizer(system, from_.model.tokenizer, from_.model.chat_template);
  tokenizer_place_.put(made);
  offer("tokenizer", made);
  return made;
}

common_actor node_actors::start_directory(caf::actor_system& system) {
  const auto& settings = from_.settings;
  directory_config config;
  config.limits.drain = settings.drain_deadline;
  if (mesh_)
    config.peers = mesh_->sessions();
  auto& sessions = config.sessions;
  sessions.router = router_;
  sessions.tokenizer = tokenizer_;
  sessions.cache = survey_;
  sessions.records = from_.records;
  sessions.model = from_.model.card;
  sessions.node = node_name(settings.node);
  sessions.incarnation = from_.incarnation;
  sessions.time = time_;
  sessions.next_request = next_request;
  sessions.random = random_number;
  sessions.report = [out = from_.out](const session_id& session, const error& why) {
    if (const auto& trace = current_trace(); trace.known()) {
      const auto text = to_traceparent(trace);
      out->warn("session",
        {{"session", session.value}, {"code", to_string(why.code)}, {"why", why.message}, {"trace", text}});
      return;
    }
    out->warn("session", {{"session", session.value}, {"code", to_string(why.code)}, {"why", why.message}});
  };
  sessions.limits.tokens_per_record = settings.commit_tokens;
  const auto made = spawn_directory(system, std::move(config));
  directory_place_.put(made);
  offer("directory", made);
  return made;
}

void node_actors::start_gateway(caf::actor_system& system) {
  gateway_config config;
  config.serves = from_.roles.gateway;
  config.directory = directory_;
  config.router = router_;
  config.tokenizer = tokenizer_;
  config.node = node_;
  const auto weak = weak_from_this();
  config.process = [weak](const std::string& node) {
    const auto self = weak.lock();
    return self ? self->process_of(node) : std::nullopt;
  };
  if (mesh_) {
    config.nodes = mesh_->nodes();
    config.absent = [weak] {
      const auto self = weak.lock();
      return self ? self->absent() : std::vector<absent_role>();
    };
  }
  config.model = from_.model.card;
  config.metrics = [figures = from_.figures] { return figures->text(); };
  config.journal_trouble = from_.journal_trouble;
  config.next_request = next_request;
  config.random = random_number;
  config.now = [time = time_] { return unix_seconds(*time); };
  config.report = [out = from_.out](std::string_view call, const error& why) {
    if (const auto& trace = current_trace(); trace.known()) {
      const auto text = to_traceparent(trace);
      out->warn(
        "request", {{"call", call}, {"code", to_string(why.code)}, {"why", why.message}, {"trace", text}});
      return;
    }
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
