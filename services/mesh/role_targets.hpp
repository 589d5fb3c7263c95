#pragma once

#include "messages/error.hpp"
#include "messages/ids.hpp"

#include <caf/actor_control_block.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace godwit {

/// The actors of other nodes that can stand in for a role which this node lacks, and the one in use. Any
/// thread may call.
///
/// The choice is sticky: the same target as long as it is there, since what it was told (a generation's
/// credit, its end) has to reach the one that knows of it. When it goes, the next is that of the highest
/// rendezvous hash of this node's name and the target's, so that nodes spread over targets, and choose
/// without talking.
///
/// A target that *drains* takes no new requests while there is another; letters without an answer still go
/// to it too, because they may be of work that it is finishing.
class role_targets {
 public:
  /// @param role as messages name it: "tokenizer"
  role_targets(std::string role, node_name self) : role_(std::move(role)), self_(std::move(self)) {}

  const std::string& role() const { return role_; }

  /// A node can be asked from now on; again: its actor is another, or it has begun to drain or ended that.
  void put(const node_name& node, caf::strong_actor_ptr actor, bool draining = false);
  /// @returns whether it was there
  bool remove(const node_name& node);
  /// No targets from now on; requests fail with this.
  void close(error why);

  /// Whom requests go to now; null: nobody.
  caf::strong_actor_ptr current() const;
  /// Whom letters without an answer go to: the one in use, then those that were in use and drain.
  std::vector<caf::strong_actor_ptr> listeners() const;
  /// Why current() is null: `unavailable`, naming the role, or what close() said.
  error refusal() const;

  /// The node in use.
  std::optional<node_name> in_use() const;
  /// All nodes, in the order of their names.
  std::vector<node_name> nodes() const;

  /// Called when the target in use has gone, on the thread that noticed it: do no work in it. One watcher; an
  /// empty one ends it, and is not called any more when this returns.
  void watch_lost(std::function<void(const node_name&)> watcher);

  std::atomic<std::uint64_t> refused{0}; ///< requests for which nobody was there
  std::atomic<std::uint64_t> dropped{0}; ///< letters for which nobody was there

 private:
  struct target {
    caf::strong_actor_ptr actor;
    bool draining = false;
    bool was_in_use = false;
  };

  void choose();

  const std::string role_;
  const node_name self_;
  mutable std::mutex mutex_;
  std::map<node_name, target> all_;
  std::optional<node_name> in_use_;
  std::optional<error> closed_;
  std::mutex watch_mutex_;
  std::function<void(const node_name&)> watcher_;
};

/// A number that every node computes alike for a pair of names (highest random weight, Thaler and
/// Ravishankar 1998).
std::uint64_t rendezvous_weight(const node_name& chooser, const node_name& candidate);

} // namespace godwit
