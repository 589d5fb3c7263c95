#pragma once

#include "messages/catalogue.hpp"
#include "messages/ids.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace godwit {

/// The nodes of a mesh that serve sessions from one journal. Any thread may call. It is advice: two nodes may
/// see it differently for a while, and only the journal's epoch decides who owns a session.
class session_peers {
 public:
  virtual ~session_peers() = default;

  /// The directory of another node that is up now; nothing for this node itself, for one that is not there,
  /// and for one that serves no sessions.
  virtual std::optional<directory_actor> find(const node_name& node) const = 0;

  /// The nodes that are up and serve sessions, in the order of their names, this one among them.
  virtual std::vector<node_name> alive() const = 0;

  /// Called for each node that serves sessions when it is lost or leaves, on a thread of the mesh: do no work
  /// in it. One watcher; an empty one ends it, and is not called any more when this returns.
  virtual void watch_lost(std::function<void(const node_name&)> watcher) = 0;
};

} // namespace godwit
