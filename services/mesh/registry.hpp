#pragma once

#include "messages/result.hpp"
#include "services/mesh/node_record.hpp"

#include <functional>
#include <optional>
#include <string>

namespace godwit {

/// Another node is known from now on, has changed, or has left the registry.
struct registry_change {
  node_record node; ///< only `name` counts when it has left
  bool there = true;
};

/// Which nodes there are, where, and by which keys they are known: a list in a file, a table of a database.
/// Whether a node is up is not asked here; the link finds out. Calls come from any thread, one at a time.
class registry {
 public:
  virtual ~registry() = default;

  /// Where this node has to listen, if the registry says so.
  virtual std::optional<node_endpoints> listen() const = 0;

  /// Where others look for this node's letters, if the registry says so and nothing else keeps two processes
  /// from having one name; empty: it does not.
  virtual std::string found_at() const { return {}; }

  /// Tells the others of this node: after its sockets are bound, and again whenever something has changed.
  /// @returns `conflict` if another node that lives has this name, or what the registry's store says
  virtual result<void> announce(const node_record& self) = 0;

  /// Calls `watcher` for every other node that is known now, before it returns, and then for each that comes,
  /// changes or leaves, one after the other on a thread of the registry: do no work in it. One watcher.
  virtual void watch(std::function<void(const registry_change&)> watcher) = 0;

  /// What its store has this node's incarnation for; 0: it keeps none. Not less than was announced: a name
  /// that had another holder gets a higher one. Any thread may call.
  virtual std::uint64_t incarnation() const { return 0; }

  /// What keeps news of other nodes from this one now, or its own from them: the registry's store is away, or
  /// cannot be read. Empty: nothing. From any thread, at any time.
  virtual std::string trouble() const { return {}; }

  /// Takes this node off, where that means something. The watcher is not called any more when this returns.
  virtual void stop() = 0;
};

} // namespace godwit
