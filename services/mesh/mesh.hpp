#pragma once

#include "actors/directory/session_peers.hpp"
#include "messages/catalogue.hpp"
#include "messages/result.hpp"
#include "services/link/actor_exchange.hpp"
#include "services/link/mesh_link.hpp"
#include "services/mesh/mesh_parts.hpp"
#include "services/mesh/mesh_view.hpp"
#include "services/mesh/registry.hpp"
#include "services/mesh/role_targets.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace godwit {

struct mesh_options {
  node_name node;
  /// This node's roles. With `session` it is one of sessions()->alive().
  std::vector<std::string> roles;
  /// Fingerprints by the model's name, as the node serves them. A peer that has another fingerprint for one
  /// of them is refused by the link; the roles of one that serves another model are not used.
  std::map<std::string, std::string> models;
  std::uint32_t capacity = 0;          ///< of its worker, if it is one
  std::string software;                ///< its version
  std::string hash_mode;               ///< how blocks of the KV cache are named
  std::uint64_t incarnation = 0;       ///< 0: the wall clock's milliseconds
  std::optional<link::node_keys> keys; ///< nothing: plain sockets, on loopback only
  std::shared_ptr<registry> nodes;
  /// Where to listen; empty ones: where the registry says.
  node_endpoints listen;
  /// Where others reach this node, if that is not where it listens (0.0.0.0, a translated port).
  node_endpoints advertise;
  link::core_options core;
  link::exchange_options exchange;

  mesh_pace pace;

  session_store sessions = session_store::none; ///< where this node keeps its sessions
  std::int64_t started_at = 0;                  ///< seconds since 1970, as its status says it
  /// Why this node must not have sessions beside the others; see mesh_view::sessions_refused(). Called when
  /// it changes, on a thread of the actor system; empty: it may again.
  std::function<void(const std::string&)> refused = {};
};

/// A node among others: the link, the actors of this node under their names, and those of other nodes in
/// place of what this one lacks. Every function may be called from any thread and none waits, but stop().
///
/// Names under which actors are offered: `node` (node_actor, needed), `tokenizer`, `router`, `directory` (of
/// a node with the role `session`), `prefill` and `decode` (of a worker), `cache`; `intake` of a worker whose
/// prompts others may compute, `prompts` of who computes them.
class mesh {
 public:
  /// Binds the sockets, tells the registry, begins to dial. Peers find this node's actors as they are
  /// offered.
  /// @returns what the link and the registry say, `invalid_argument` when nobody says where to listen, and
  /// `conflict` when another process listens where the others look for this node
  static result<std::unique_ptr<mesh>> start(caf::actor_system& system, mesh_options options);

  /// Stops with `draining` if that was not done.
  virtual ~mesh() = default;

  /// This node as its peers see it.
  virtual const node_record& self() const = 0;
  /// Its incarnation now: higher at each start, and again when the process was stopped for so long that
  /// others gave it up. Link and registry have the same.
  virtual std::uint64_t incarnation() const = 0;

  /// Peers reach the actor by this name from now on; again after it was restarted.
  template <class Interface>
  void offer(const std::string& name, const Interface& actor) {
    exchange()->publish(name, actor);
    offered(name, caf::actor_cast<caf::strong_actor_ptr>(actor), link::codec_of<Interface>());
  }
  virtual void withdraw(const std::string& name) = 0;

  /// A handle for what other nodes offer under a name: `tokenizer`, `router`, `directory`. Works from now on,
  /// whoever comes and goes; see role_actor.
  template <class Interface>
  Interface role(const std::string& name) {
    return caf::actor_cast<Interface>(
      role_as(name, link::codec_of<Interface>(), [from = exchange(), name](const node_name& node) {
        return caf::actor_cast<caf::strong_actor_ptr>(from->remote<Interface>(node.value, name));
      }));
  }
  /// What one certain node offers under a name, whether it is there or not. The handle is dead when that node
  /// is lost; ask for another then.
  template <class Interface>
  Interface at(const node_name& node, const std::string& name) {
    return exchange()->remote<Interface>(node.value, name);
  }

  /// Who stands behind such a handle; null before role() was called for it.
  virtual std::shared_ptr<role_targets> targets(const std::string& name) const = 0;

  /// Called with each worker node that is there and with each that comes or comes back, on a thread of the
  /// actor system: send the router a letter and return. One watcher; this node's own worker is none of them.
  /// @param gone called likewise with one that is there no more: its node was lost, or has no such worker
  /// now. Who monitors the handles notices a loss too, but not that a node gave up the role.
  virtual void watch_workers(
    std::function<void(const remote_worker&)> watcher, std::function<void(const node_name&)> gone = {}) = 0;

  /// Called with each node that computes prompts for the workers of others, with those that come, and with
  /// those that go or take no more; as for workers.
  virtual void watch_prompts(std::function<void(const node_name&, bool there)> watcher) = 0;

  /// The nodes that serve sessions.
  virtual const std::shared_ptr<session_peers>& sessions() const = 0;

  virtual const mesh_nodes_actor& nodes() const = 0;
  virtual mesh_figures figures() const = 0;
  virtual const link::link_counters& counters() const = 0;

  /// Peers ask this node again what it serves: something has changed. offer() and withdraw() do it already.
  virtual void changed() = 0;
  /// Peers take other nodes for new work from now on; the links stay, for what is running. After the node
  /// actor was told to drain, which is what peers are told.
  virtual void drain() = 0;

  /// Leaves: what is queued goes out, at most so long, peers are told the cause, handles of other nodes are
  /// dead, requests of this node fail with the cause. Before the actor system ends.
  virtual void stop(link::end_cause cause, std::chrono::milliseconds time) = 0;

 protected:
  virtual const std::shared_ptr<link::actor_exchange>& exchange() = 0;
  virtual void offered(
    const std::string& name, caf::strong_actor_ptr actor, const link::interface_codec& codec) = 0;
  virtual caf::strong_actor_ptr role_as(const std::string& name, const link::interface_codec& codec,
    std::function<caf::strong_actor_ptr(const node_name&)> remote) = 0;
};

} // namespace godwit
