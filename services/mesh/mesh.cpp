#include "services/mesh/mesh.hpp"

#include "messages/check.hpp"
#include "services/mesh/endpoint_probe.hpp"
#include "services/mesh/mesh_shell.hpp"

#include <caf/send.hpp>

#include <algorithm>
#include <atomic>
#include <utility>

namespace godwit {

namespace {

using namespace std::chrono_literals;

/// Names for which another node's actor can stand in, and what offers them.
bool is_role(const std::string& name) {
  return name == "tokenizer" || name == "router" || name == "directory";
}

bool serves_sessions(const std::vector<std::string>& roles) {
  return std::ranges::any_of(
    roles, [](const auto& each) { return each == "all" || each == "session" || each == "directory"; });
}

std::uint64_t wall_ms() {
  return static_cast<std::uint64_t>(
    std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count());
}

/// This node's record, as it was last announced; of the mesh's actor as soon as the node has joined.
struct announced {
  std::atomic<bool> joined{false};
  node_record record;
};

/// A node that was stopped rises by the link's word, one whose name another process had by the registry's.
void agree_on(announced& own, registry& nodes, link::mesh_link& link) {
  if (const auto listed = nodes.incarnation(); listed > link.incarnation())
    link.rise(listed);
  const auto now = link.incarnation();
  if (!own.joined || now <= own.record.incarnation)
    return;
  own.record.incarnation = now;
  // What keeps it from being written is the registry's trouble, which is shown as that.
  static_cast<void>(nodes.announce(own.record));
}

/// For an answer of a process that has this one's name.
constexpr auto namesake_patience = 1s;

const error stopped{errc::draining, "this node is stopping", {}, {}};

class node_mesh final : public mesh {
 public:
  node_mesh(caf::actor_system& system, node_record self, std::shared_ptr<registry> nodes, mesh_pace pace,
    session_place place, std::function<void(const std::string&)> refused,
    std::shared_ptr<link::actor_exchange> exchange, std::shared_ptr<link::mesh_link> link)
    : system_(system), self_(std::move(self)), nodes_(std::move(nodes)), exchange_(std::move(exchange)),
      link_(std::move(link)), roles_(std::make_shared<role_table>(self_.name)),
      directories_(std::make_shared<session_nodes>(self_.name, serves_sessions(self_.roles))),
      sessions_(directories_) {
    shell_ = spawn_mesh_shell(system_,
      {self_.name, self_.models, std::move(place), std::move(refused), pace, exchange_, roles_, directories_,
        [link = std::weak_ptr(link_)]() -> std::vector<link::peer_status> {
          const auto now = link.lock();
          return now ? now->snapshot() : std::vector<link::peer_status>{};
        },
        [nodes = nodes_] { return nodes->trouble(); },
        [link = std::weak_ptr(link_)](const node_record& node) {
          if (const auto now = link.lock())
            now->add_peer(to_peer(node));
        },
        [link = std::weak_ptr(link_)](const node_name& node, link::end_cause cause) {
          if (const auto now = link.lock())
            now->remove_peer(node, cause);
        },
        [own = own_, nodes = nodes_, link = std::weak_ptr(link_)] {
          if (const auto now = link.lock())
            agree_on(*own, *nodes, *now);
        }});
    list_ = caf::actor_cast<mesh_nodes_actor>(shell_);
    exchange_->publish("mesh", caf::actor_cast<mesh_peer_actor>(shell_));
    exchange_->watch_peers(
      [roles = roles_, sessions = directories_, shell = shell_](const link::peer_change& change) {
        const node_name node{std::string(change.node)};
        // At once, and not when the actor has its turn: whoever tries again has the next one.
        if (!change.up) {
          roles->lost(node);
          sessions->remove(node);
        }
        caf::anon_send(shell, link_news{node, change.up, std::string(change.why)});
      });
  }

  ~node_mesh() override { stop(link::end_cause::draining, 0ms); }

  result<void> join() {
    if (auto told = nodes_->announce(self_); !told)
      return told;
    own_->record = self_;
    own_->record.incarnation = std::max(self_.incarnation, nodes_->incarnation());
    link_->rise(own_->record.incarnation); // before anybody is greeted
    // The mesh's actor tells the link, so that both know the same nodes.
    nodes_->watch([shell = shell_, self = self_.name](const registry_change& change) {
      if (change.node.name != self)
        caf::anon_send(shell, registry_news{change.node, change.there});
    });
    own_->joined = true;
    return {};
  }

  const node_record& self() const override { return self_; }
  std::uint64_t incarnation() const override { return std::max(link_->incarnation(), nodes_->incarnation()); }

  void withdraw(const std::string& name) override {
    exchange_->withdraw(name);
    caf::anon_send(shell_, offer_news{name, nullptr});
  }

  std::shared_ptr<role_targets> targets(const std::string& name) const override {
    return roles_->targets(name);
  }

  void watch_workers(
    std::function<void(const remote_worker&)> watcher, std::function<void(const node_name&)> gone) override {
    caf::anon_send(shell_, worker_watch{std::move(watcher), std::move(gone)});
  }

  void watch_prompts(std::function<void(const node_name&, bool)> watcher) override {
    caf::anon_send(shell_, prompt_watch{std::move(watcher)});
  }

  const std::shared_ptr<session_peers>& sessions() const override { return sessions_; }
  const mesh_nodes_actor& nodes() const override { return list_; }
  const link::link_counters& counters() const override { return link_->counters(); }

  mesh_figures figures() const override {
    mesh_figures out;
    out.peers = link_->snapshot();
    out.roles = roles_->figures();
    out.registry_trouble = nodes_->trouble();
    out.references = exchange_->references();
    const auto counts = exchange_->counts();
    out.malformed_messages = counts.malformed;
    out.untaken = counts.untaken;
    out.untaken_overflows = counts.untaken_overflows;
    out.dead_letters = link_->counters().dead_letters.load() + counts.dead_letters;
    for (const auto& each : out.roles)
      out.dead_letters += each.dropped;
    return out;
  }

  void changed() override { caf::anon_send(shell_, info_atom::value); }
  void drain() override { caf::anon_send(shell_, join_atom::value, info_atom::value); }

  void stop(link::end_cause cause, std::chrono::milliseconds time) override {
    if (stopped_.exchange(true))
      return;
    roles_->close(stopped);
    directories_->close();
    caf::anon_send(shell_, stop_atom::value);
    exchange_->close();
    // Peers hear why before they see that it has left the registry.
    link_->stop(cause, time);
    nodes_->stop();
  }

 protected:
  const std::shared_ptr<link::actor_exchange>& exchange() override { return exchange_; }

  void offered(
    const std::string& name, caf::strong_actor_ptr actor, const link::interface_codec& codec) override {
    const auto is = [&]<class Interface>(const char* which, std::type_identity<Interface>) {
      return name != which || &codec == &link::codec_of<Interface>();
    };
    GODWIT_CHECK(name != "mesh");
    GODWIT_CHECK(is("node", std::type_identity<node_actor>{}));
    GODWIT_CHECK(is("prefill", std::type_identity<prefill_actor>{}));
    GODWIT_CHECK(is("decode", std::type_identity<decode_actor>{}));
    GODWIT_CHECK(is("directory", std::type_identity<directory_actor>{}));
    GODWIT_CHECK(is("router", std::type_identity<router_actor>{}));
    GODWIT_CHECK(is("tokenizer", std::type_identity<tokenizer_actor>{}));
    caf::anon_send(shell_, offer_news{name, std::move(actor)});
  }

  caf::strong_actor_ptr role_as(const std::string& name, const link::interface_codec& codec,
    std::function<caf::strong_actor_ptr(const node_name&)> remote) override {
    GODWIT_CHECK(is_role(name));
    auto handle = roles_->handle(system_, name, codec, std::move(remote));
    caf::anon_send(shell_, role_news{name});
    return handle;
  }

 private:
  caf::actor_system& system_;
  const node_record self_;
  const std::shared_ptr<registry> nodes_;
  const std::shared_ptr<announced> own_ = std::make_shared<announced>();
  const std::shared_ptr<link::actor_exchange> exchange_;
  const std::shared_ptr<link::mesh_link> link_;
  const std::shared_ptr<role_table> roles_;
  const std::shared_ptr<session_nodes> directories_;
  const std::shared_ptr<session_peers> sessions_;
  mesh_shell_actor shell_;
  mesh_nodes_actor list_;
  std::atomic<bool> stopped_{false};
};

/// What is given of `first`, else `then`.
node_endpoints either(const node_endpoints& first, const node_endpoints& then) {
  return {first.letters.empty() ? then.letters : first.letters, first.bulk.empty() ? then.bulk : first.bulk,
    first.events.empty() ? then.events : first.events};
}

} // namespace

result<std::unique_ptr<mesh>> mesh::start(caf::actor_system& system, mesh_options options) {
  GODWIT_CHECK(options.nodes != nullptr);
  const auto where = either(options.listen, options.nodes->listen().value_or(node_endpoints{}));
  if (where.letters.empty() || where.bulk.empty() || where.events.empty())
    return fail(errc::invalid_argument, "nothing says where the node " + options.node.value
                                          + " listens: give it an entry in the list of nodes");

  // This one does not listen yet: whoever answers there is another process.
  if (const auto at = options.nodes->found_at(); speaks_zmtp(at, namesake_patience))
    return fail(errc::conflict, "another process of this mesh is called " + options.node.value
                                  + " and lives, at " + at
                                  + ", where the others look for it: end it, or give this one another name "
                                    "(the setting node)");

  link::link_options how;
  how.node = options.node;
  how.incarnation = options.incarnation != 0 ? options.incarnation : wall_ms();
  how.software = options.software;
  how.hash_mode = options.hash_mode;
  how.models = options.models;
  how.core = options.core;
  how.sockets.keys = options.keys;
  how.sockets.letters = where.letters;
  how.sockets.bulk = where.bulk;
  how.sockets.events = where.events;

  node_record self;
  self.name = options.node;
  self.incarnation = how.incarnation;
  if (options.keys)
    self.key = options.keys->open;
  self.roles = std::move(options.roles);
  self.models = std::move(options.models);
  self.capacity = options.capacity;

  auto exchange = link::actor_exchange::make(system, options.exchange);
  auto made = link::mesh_link::start(std::move(how), exchange);
  if (!made)
    return fail(made);
  const std::shared_ptr<link::mesh_link> link = std::move(*made);
  exchange->use(link);
  const auto& bound = link->bound();
  self.endpoints = either(options.advertise, {bound.letters, bound.bulk, bound.events});
  auto out = std::make_unique<node_mesh>(system, std::move(self), std::move(options.nodes), options.pace,
    session_place{options.sessions, options.node, options.started_at}, std::move(options.refused),
    std::move(exchange), link);
  if (auto joined = out->join(); !joined)
    return fail(joined);
  return out;
}

} // namespace godwit
