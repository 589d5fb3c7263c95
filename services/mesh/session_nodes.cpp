#include "services/mesh/session_nodes.hpp"

#include <algorithm>
#include <utility>

namespace godwit {

void session_nodes::put(const node_name& node, directory_actor directory) {
  const std::lock_guard lock(mutex_);
  // The earlier handle is let go without the lock.
  if (const auto [place, fresh] = all_.try_emplace(node, directory); !fresh)
    std::swap(place->second, directory);
}

void session_nodes::remove(const node_name& node) {
  {
    decltype(all_)::node_type gone;
    const std::lock_guard lock(mutex_);
    gone = all_.extract(node);
    if (!gone)
      return;
  }
  const std::lock_guard lock(watch_mutex_);
  if (watcher_)
    watcher_(node);
}

void session_nodes::close() {
  watch_lost({});
  decltype(all_) gone;
  const std::lock_guard lock(mutex_);
  gone.swap(all_);
}

std::optional<directory_actor> session_nodes::find(const node_name& node) const {
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(node);
  return found == all_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<node_name> session_nodes::alive() const {
  std::vector<node_name> out;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [node, directory] : all_)
      out.push_back(node);
  }
  if (serves_)
    out.insert(std::ranges::lower_bound(out, self_), self_);
  return out;
}

void session_nodes::watch_lost(std::function<void(const node_name&)> watcher) {
  const std::lock_guard lock(watch_mutex_);
  watcher_ = std::move(watcher);
}

} // namespace godwit
