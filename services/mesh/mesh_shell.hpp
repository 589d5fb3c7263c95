#pragma once

#include "services/link/actor_exchange.hpp"
#include "services/link/end_cause.hpp"
#include "services/mesh/mesh_parts.hpp"
#include "services/mesh/mesh_view.hpp"
#include "services/mesh/node_record.hpp"
#include "services/mesh/role_table.hpp"
#include "services/mesh/session_nodes.hpp"

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/fwd.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace godwit {

/// A node is in the registry, or no more.
struct registry_news {
  node_record node; ///< only `name` counts when it has left
  bool there = true;
};

/// A node has come up, or has gone.
struct link_news {
  node_name node;
  bool up = false;
  std::string why;
};

/// An actor of this node has a name from now on; null: nobody has it.
struct offer_news {
  std::string name;
  caf::strong_actor_ptr actor;
};

/// A role of other nodes is wanted.
struct role_news {
  std::string name;
};

/// Who is told of workers.
struct worker_watch {
  std::function<void(const remote_worker&)> call;
  std::function<void(const node_name&)> gone;
};

/// Who is told of nodes that compute prompts.
struct prompt_watch {
  std::function<void(const node_name&, bool there)> call;
};

} // namespace godwit

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(godwit::registry_news)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(godwit::link_news)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(godwit::offer_news)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(godwit::role_news)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(godwit::worker_watch)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(godwit::prompt_watch)

namespace godwit {

/// What meshes say to each other, under the name `mesh`.
using mesh_peer_actor = caf::typed_actor<
  // The worker of this node as it is now.
  caf::replies_to<join_atom>::with<prefill_actor, decode_actor>,
  // Something of the node that it names has changed: ask it again.
  caf::reacts_to<letter<schema::NodeStatus>>>;

/// The actor of a mesh.
using mesh_shell_actor = mesh_peer_actor::extend_with<mesh_nodes_actor>::extend<caf::reacts_to<registry_news>,
  caf::reacts_to<link_news>, caf::reacts_to<offer_news>, caf::reacts_to<role_news>,
  caf::reacts_to<worker_watch>, caf::reacts_to<prompt_watch>,
  // This node has changed: its peers are told.
  caf::reacts_to<info_atom>,
  // Peers are told now.
  caf::reacts_to<join_atom, info_atom>,
  // Somebody is to be asked.
  caf::reacts_to<tick_atom>, caf::reacts_to<stop_atom>>;

struct shell_parts {
  node_name self;
  std::map<std::string, std::string> models;
  session_place sessions_of; ///< this node among those with sessions
  /// Why this node must not have sessions, whenever that changes; empty: it may. Null: nobody wants to know.
  std::function<void(const std::string&)> refused;
  mesh_pace pace;
  std::shared_ptr<link::actor_exchange> exchange;
  std::shared_ptr<role_table> roles;
  std::shared_ptr<session_nodes> sessions;
  /// The link's view of the peers; does not wait.
  std::function<std::vector<link::peer_status>()> peers;
  /// What is wrong with the registry; empty: nothing.
  std::function<std::string()> registry_trouble;
  /// Has the link know a node, or forget it for this cause.
  std::function<void(const node_record&)> add_peer;
  std::function<void(const node_name&, link::end_cause)> remove_peer;
  /// Has the link and the registry agree on this node's incarnation. Called when either may have changed it.
  std::function<void()> agree;
};

/// Asks the nodes that come what they serve, and puts that into place.
mesh_shell_actor spawn_mesh_shell(caf::actor_system& system, shell_parts parts);

} // namespace godwit
