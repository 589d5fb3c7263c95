#pragma once

#include "actors/directory/session_peers.hpp"

#include <map>
#include <mutex>

namespace godwit {

/// The directories of other nodes, as the mesh finds and loses them.
class session_nodes final : public session_peers {
 public:
  /// @param serves whether this node serves sessions itself
  session_nodes(node_name self, bool serves) : self_(std::move(self)), serves_(serves) {}

  void put(const node_name& node, directory_actor directory);
  /// Tells the watcher if it was there.
  void remove(const node_name& node);
  /// Nobody is there any more, and the watcher is not told.
  void close();

  std::optional<directory_actor> find(const node_name& node) const override;
  std::vector<node_name> alive() const override;
  void watch_lost(std::function<void(const node_name&)> watcher) override;

 private:
  const node_name self_;
  const bool serves_;
  mutable std::mutex mutex_;
  std::map<node_name, directory_actor> all_;
  std::mutex watch_mutex_;
  std::function<void(const node_name&)> watcher_;
};

} // namespace godwit
