#pragma once

#include "actors/directory/session_peers.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace godwit {

/// The other nodes as a test says that one node sees them. Thread-safe.
class fake_peers final : public session_peers {
 public:
  explicit fake_peers(node_name self) : self_(std::move(self)) {}

  std::optional<directory_actor> find(const node_name& node) const override {
    const std::lock_guard lock(mutex_);
    const auto found = up_.find(node);
    return found == up_.end() ? std::nullopt : std::optional(found->second);
  }
  std::vector<node_name> alive() const override {
    const std::lock_guard lock(mutex_);
    std::vector<node_name> names;
    for (const auto& [name, directory] : up_)
      names.push_back(name);
    names.insert(std::lower_bound(names.begin(), names.end(), self_), self_);
    return names;
  }
  void watch_lost(std::function<void(const node_name&)> watcher) override {
    const std::lock_guard lock(mutex_);
    watcher_ = std::move(watcher);
  }

  void up(const node_name& node, const directory_actor& directory) {
    const std::lock_guard lock(mutex_);
    up_[node] = directory;
  }
  /// Forgets a node, and says so if it was there.
  void down(const node_name& node) {
    const std::lock_guard lock(mutex_);
    if (up_.erase(node) != 0 && watcher_)
      watcher_(node);
  }
  bool watched() const {
    const std::lock_guard lock(mutex_);
    return watcher_ != nullptr;
  }

 private:
  mutable std::mutex mutex_;
  node_name self_;
  std::map<node_name, directory_actor> up_;
  std::function<void(const node_name&)> watcher_;
};

} // namespace godwit
