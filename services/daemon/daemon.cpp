#include "services/daemon/daemon.hpp"

#include "actors/trace/trace_scope.hpp"
#include "messages/actor_error.hpp"
#include "services/daemon/cold_tier.hpp"
#include "services/daemon/journal_options.hpp"
#include "services/daemon/meters.hpp"
#include "services/daemon/node_actors.hpp"
#include "services/daemon/node_mesh.hpp"
#include "services/daemon/watch.hpp"
#include "services/http/server.hpp"
#include "services/store/data_directory.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <limits>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

namespace godwit {

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Files of the stores, the model, and what the system needs beside connections.
constexpr rlim_t other_descriptors = 320;

/// As many descriptors as the system allows. @returns how many connections they are enough for
std::size_t raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return std::numeric_limits<std::size_t>::max();
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  // With very few, half of them each: a store opens its files again when it needs them.
  return limit.rlim_cur - std::min(other_descriptors, limit.rlim_cur / 2);
}

/// Of this process, for claims in the journal.
std::string new_incarnation() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

http::server_options http_options(const config& settings, std::shared_ptr<metrics> figures) {
  http::server_options out;
  out.address = settings.listen.host;
  out.port = settings.listen.port;
  out.max_connections = settings.max_connections;
  out.head_bytes = settings.max_header_bytes;
  out.body_bytes = settings.max_body_bytes;
  out.body_bytes_total = std::max(out.body_bytes_total, out.body_bytes);
  out.head_time = settings.header_timeout;
  out.body_grace = settings.body_timeout;
  out.idle_time = settings.idle_timeout;
  out.observe = [figures = std::move(figures)](const http::answered& what) {
    figures->http_answer(what.method, what.path, what.status, what.took);
  };
  return out;
}

/// Ends the process if its orderly end takes too long: everything that matters is on the disk already.
class last_resort {
 public:
  last_resort(milliseconds time, int code)
    : thread_([this, time, code] {
        std::unique_lock lock(mutex_);
        if (!done_.wait_for(lock, time, [this] { return ended_; }))
          std::_Exit(code);
      }) {}
  ~last_resort() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    done_.notify_all();
    thread_.join();
  }
  last_resort(const last_resort&) = delete;
  last_resort& operator=(const last_resort&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  bool ended_ = false;
  std::thread thread_;
};

/// Everything of a node that is running, in the order in which it was made; it goes in the opposite one.
class running_node {
 public:
  running_node(const config& settings, termination& stop, std::FILE* words)
    : settings_(settings), stop_(stop),
      out_(make_logger(words, {parse_log_level(settings.log_level).value_or(log_level::info),
                                settings.log_format == log_format::json})) {}

  const std::shared_ptr<logger>& out() const { return out_; }
  std::uint16_t port() const { return server_->port(); }

  /// Data directory, listening socket; then journal and model at the same time; then the actors. What no role
  /// of the node needs is left out.
  result<void> start() {
    const auto began = clock::now();
    if (const auto room = raise_file_limit(); settings_.max_connections > room) {
      out_->warn("fewer connections than set: the limit of open files (ulimit -n) allows no more",
        {{"max_connections", std::uint64_t{settings_.max_connections}}, {"allowed", std::uint64_t{room}}});
      settings_.max_connections = static_cast<decltype(settings_.max_connections)>(room);
    }
    for (const auto& name : settings_.unknown_variables)
      out_->warn("an environment variable that nothing reads", {{"name", name}});
    const auto roles = roles_of(settings_);
    if (!roles)
      return fail(roles);
    roles_ = *roles;
    if (needs_data()) {
      auto data = data_directory::open(settings_.data, node_name(settings_.node));
      if (!data)
        return fail(data);
      data_.emplace(std::move(*data));
    }

    auto listening = http::server::start(http_options(settings_, figures_), front_);
    if (!listening)
      return fail(listening);
    server_ = std::move(*listening);

    auto opening = std::async(std::launch::async, [this] { return open_records(); });
    auto model = load_model(
      settings_.model, settings_.threads, settings_.repack_cache,
      [out = out_](const std::string& what) {
        out->warn("packed weights", {{"why", what}});
      },
      roles_.worker(), kv_type_named(settings_.kv_type));
    if (const auto journal = opening.get(); !journal)
      return fail(journal);
    if (!model)
      return fail(model);
    if (roles_.worker()) {
      const auto folder = data_ ? data_->path() / "cold" : std::filesystem::path();
      auto cold = open_cold_tier(settings_, folder, scope_of(*model->model), out_);
      if (!cold)
        return fail(cold);
      cold_ = std::move(*cold);
    }
    const auto loaded = clock::now();

    if (auto wired = wire(std::move(*model)); !wired)
      return wired;
    if (auto ready = wait_until_ready(); !ready)
      return ready;
    const std::chrono::duration<double> load = loaded - began;
    const std::chrono::duration<double> all = clock::now() - began;
    out_->info("ready", {{"node", settings_.node}, {"load_seconds", load.count()}, {"seconds", all.count()},
                          {"fingerprint", fingerprint_}});
    return {};
  }

  /// Until the node is to end: by a signal, or because it cannot go on, which is the error.
  result<void> serve() {
    while (!stop_.wait_for(milliseconds(1000)))
      if (const auto status = info())
        figures_->actors(*status);
    if (const auto why = failure(); !why.empty())
      return fail(errc::internal, why);
    return {};
  }

  /// Which part cannot be kept running, and why; empty: none.
  std::string failure() const {
    const std::lock_guard lock(failure_mutex_);
    return failure_;
  }

  /// Lets running turns end, refusing new ones, and has others take new work elsewhere. @returns how many did
  /// not
  std::uint32_t drain() {
    out_->info("draining", {{"seconds", std::int64_t{settings_.drain_deadline.count()}}});
    front_->drain();
    std::uint32_t left = 0;
    caf::scoped_actor self{*system_};
    auto answer =
      self->request(actors_->node(), settings_.drain_deadline + std::chrono::seconds(5), drain_atom::value);
    actors_->drain();
    answer.receive([&](const letter<schema::Drained>& drained) { left = drained.read().getRemaining(); },
      [&](const caf::error& why) {
        left = 1;
        out_->warn("the drain was cut short", {{"why", from_caf_error(why).message}});
      });
    if (left > 0)
      out_->warn("turns go on at the next start", {{"turns", std::uint64_t{left}}});
    return left;
  }

  /// Ends everything.
  void end(int code) {
    const last_resort watchdog(std::chrono::seconds(10), code);
    if (server_)
      server_->stop(milliseconds(500));
    if (actors_)
      actors_->stop(link::end_cause::draining);
    front_->clear();
    actors_.reset();
    // Waits for all actors: those that wait for the journal get their answer from it first.
    system_.reset();
    cold_ = {};
    records_.reset();
    server_.reset();
    data_.reset();
  }

 private:
  /// For the embedded journal, and the cache's tier on disk where it has no folder of its own.
  bool needs_data() const {
    return (roles_.has_journal() && settings_.journal == journal_kind::rocksdb)
           || (roles_.worker() && settings_.cache_cold_bytes > 0 && settings_.cache_cold_dir.empty());
  }

  result<void> open_records() {
    if (!roles_.has_journal())
      return {};
    auto made = open_journal(settings_, data_ ? data_->journal() : std::filesystem::path(),
      std::make_shared<journal_meter>(figures_, out_));
    if (!made)
      return fail(made);
    records_ = std::move(*made);
    return {};
  }

  result<void> wire(loaded_model model) {
    actor_config_.set("scheduler.max-threads", std::clamp(std::thread::hardware_concurrency(), 2U, 4U));
    configure_scheduler(actor_config_);
    system_ = std::make_unique<caf::actor_system>(actor_config_);
    fingerprint_ = model.card.fingerprint;

    node_ingredients from{settings_, new_incarnation(), std::move(model), records_, figures_, out_, front_,
      [weak = std::weak_ptr(records_)] {
        const auto now = weak.lock();
        return now ? now->trouble() : std::string();
      },
      cold_.store, cold_.key, roles_};
    from.version = GODWIT_VERSION;
    from.leave = [&stop = stop_] { stop.request(); };
    from.failed = [this](const std::string& why) {
      {
        const std::lock_guard lock(failure_mutex_);
        failure_ = why;
      }
      stop_.request();
    };
    if (settings_.in_mesh()) {
      auto others = mesh_options_of(
        settings_, roles_, from.model.card, from.version, [out = out_](const std::string& why) {
          out->warn("registry", {{"why", why}});
        });
      if (!others)
        return fail(others);
      others->exchange.served = [out = out_](const link::served_request& one) {
        const auto trace = to_traceparent(one.trace);
        out->info("served", {{"peer", one.node}, {"actor", one.actor}, {"trace", trace},
                              {"seconds", std::chrono::duration<double>(one.took).count()},
                              {"outcome", one.failure ? to_string(*one.failure) : "ok"}});
      };
      from.others = std::move(*others);
    }
    auto actors = node_actors::start(*system_, std::move(from));
    if (!actors)
      return fail(actors);
    actors_ = std::move(*actors);
    watch_mesh(*figures_, [weak = std::weak_ptr(actors_)]() -> std::shared_ptr<const mesh> {
      const auto now = weak.lock();
      return now ? now->others() : nullptr;
    });
    watch_engine(*figures_, [weak = std::weak_ptr(actors_)]() -> std::shared_ptr<const engine_counters> {
      const auto now = weak.lock();
      return now ? now->counters() : nullptr;
    });
    if (settings_.in_mesh())
      watch_handover(
        *figures_, [weak = std::weak_ptr(actors_)]() -> std::shared_ptr<const handover_counters> {
          const auto now = weak.lock();
          return now ? now->handover() : nullptr;
        });
    watch_journal(*figures_, [weak = std::weak_ptr(records_)]() -> std::shared_ptr<const journal_counters> {
      const auto now = weak.lock();
      return now ? std::shared_ptr<const journal_counters>(now, &now->counters()) : nullptr;
    });
    watch_http(*figures_, [this] { return server_ ? server_->counts() : http::server_counts{}; });
    return {};
  }

  std::optional<letter<schema::NodeStatus>> info() {
    std::optional<letter<schema::NodeStatus>> out;
    caf::scoped_actor self{*system_};
    self->request(actors_->node(), std::chrono::seconds(5), info_atom::value)
      .receive([&](const letter<schema::NodeStatus>& status) { out = status; }, [](const caf::error&) {});
    return out;
  }

  /// Whether the node has done its part: what others have to bring may come later.
  bool has_started(schema::NodeStatus::Reader node) const {
    if (!settings_.in_mesh())
      return node.getState() == "ready";
    for (const auto part : node.getActors())
      if (part.getState() != "ready" && part.getState() != "waiting")
        return false;
    return node.getState() != "failed";
  }

  /// Waits for the children, and for the sessions that were running when the node stopped.
  result<void> wait_until_ready() {
    // The supervisor answers when it has started its children; they have joined the node by then.
    caf::scoped_actor self{*system_};
    bool started = false;
    self->request(actors_->supervisor(), std::chrono::seconds(60), status_atom::value)
      .receive([&](const letter<schema::ActorStatus>&) { started = true; }, [](const caf::error&) {});
    if (!started)
      return fail(errc::deadline, "the node's parts did not start in time");
    caf::anon_send(
      actors_->node(), join_atom::value, std::string("supervisor"), common_actor(actors_->supervisor()));
    for (;;) {
      const auto status = info();
      if (status && has_started(status->read())) {
        figures_->actors(*status);
        return {};
      }
      const bool ends = stop_.wait_for(milliseconds(5));
      if (const auto why = failure(); !why.empty())
        return fail(errc::internal, why);
      if (ends)
        return fail(errc::cancelled, "ended before it was ready");
    }
  }

  config settings_;
  node_roles roles_;
  termination& stop_;
  mutable std::mutex failure_mutex_;
  std::string failure_;
  const std::shared_ptr<logger> out_;
  const std::shared_ptr<metrics> figures_ = std::make_shared<metrics>();
  const std::shared_ptr<gateway_switch> front_ = std::make_shared<gateway_switch>();
  std::optional<data_directory> data_;
  std::unique_ptr<http::server> server_;
  std::shared_ptr<stored_journal> records_;
  cold_tier cold_;
  caf::actor_system_config actor_config_;
  std::unique_ptr<caf::actor_system> system_;
  std::shared_ptr<node_actors> actors_;
  std::string fingerprint_;
};

std::string bracketed(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

} // namespace

int run_node(const config& settings, termination& stop, std::FILE* out, std::FILE* words) {
  running_node node(settings, stop, words);
  if (const auto started = node.start(); !started) {
    const bool asked = stop.requested() && node.failure().empty();
    node.end(asked ? 0 : 1);
    if (!asked)
      fmt::print(words, "godwitd: {}\n", started.error().message);
    return asked ? 0 : 1;
  }
  fmt::print(out, "godwit: ready on http://{}:{} (node {})\n", bracketed(settings.listen.host), node.port(),
    settings.node);
  std::fflush(out);
  const auto served = node.serve();
  if (!served)
    node.out()->error("the node ends", {{"why", served.error().message}});
  // Whatever makes it end: streams and turns of parts that are well end, or others take them over.
  node.drain();
  const int code = served ? 0 : 1;
  node.end(code);
  return code;
}

} // namespace godwit
