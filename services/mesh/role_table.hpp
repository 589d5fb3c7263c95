#pragma once

#include "messages/catalogue.hpp"
#include "services/link/actor_codec.hpp"
#include "services/mesh/mesh_parts.hpp"
#include "services/mesh/role_targets.hpp"

#include <caf/fwd.hpp>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace godwit {

/// The roles that this node takes from others, and who is there for each. Any thread may call: the link's
/// thread takes a lost node out at once, the mesh's actor puts it in when it knows what the node serves.
class role_table {
 public:
  /// Makes a handle of what a node offers.
  using maker = std::function<caf::strong_actor_ptr(const node_name&)>;

  explicit role_table(node_name self) : self_(std::move(self)) {}

  /// One handle for each name.
  caf::strong_actor_ptr handle(
    caf::actor_system& system, const std::string& name, const link::interface_codec& codec, maker remote);
  /// Null for a name for which there is no handle.
  std::shared_ptr<role_targets> targets(const std::string& name) const;

  /// Nothing happens for a name for which there is no handle.
  void put(const node_name& node, const std::string& name, bool draining);
  void remove(const node_name& node, const std::string& name);
  /// Takes a node out of all roles.
  void lost(const node_name& node);
  /// Requests fail with this from now on.
  void close(const error& why);

  std::vector<mesh_figures::role> figures() const;

 private:
  struct role {
    std::shared_ptr<role_targets> targets;
    const link::interface_codec* codec = nullptr;
    maker remote;
    caf::strong_actor_ptr handle;
  };

  const node_name self_;
  mutable std::mutex mutex_;
  std::map<std::string, role> all_;
  std::optional<error> closed_;
};

} // namespace godwit
