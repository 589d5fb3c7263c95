#pragma once

#include "services/mesh/leader_workers.hpp"
#include "services/mesh/registry.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace godwit {

struct group_registry_options {
  std::filesystem::path file = "/etc/rbg/config.yaml";
  /// The folder with NODE.public for each node.
  std::filesystem::path keys;
  /// Where to listen: a pod knows its own address as a name only.
  std::string bind = "0.0.0.0";
  std::uint16_t port = 0; ///< of a leader-worker set's nodes; bulk and events have the two that follow
  std::chrono::milliseconds poll{5'000}; ///< between two looks at the file
  environment_lookup environment;
  /// What is wrong with the file, or with a node of it, since the last look; called on the registry's thread.
  std::function<void(const error&)> report = [](const error&) {};
};

/// Nodes from the file that a role group of Kubernetes mounts into its pods (see group_file). The group's
/// controller changes it when the group is scaled, so it is looked at again and again.
///
/// A node is an instance of any role whose service has a port named `mesh` (letters; bulk and events have the
/// two ports that follow), or three named `mesh-letters`, `mesh-bulk` and `mesh-events`. Its name is the
/// first part of its address. Which one this process is, is said by RBG_ROLE_NAME and RBG_ROLE_INDEX.
/// Instances without such ports are other programs. All nodes have keys.
///
/// Where RBG_ROLE_NAME is not set, but LWS_LEADER_ADDRESS is, the nodes are the pods of one group of a
/// leader-worker set (see leader_workers), all at one port. A role group's file lists of such sets the
/// leaders only, so that other pods of them are refused there.
class group_registry {
 public:
  /// @returns `invalid_argument` for a variable that is not set or names no instance, and for a leader-worker
  /// set without a port; `not_found` and `io` for the file, `corrupt` for its content
  static result<std::shared_ptr<registry>> open(group_registry_options options);

  /// What this process is called in the group. @returns as open()
  static result<node_name> own_name(const group_registry_options& options);
};

} // namespace godwit
