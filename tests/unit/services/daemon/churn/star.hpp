#pragma once

// A mesh in the shape of a star: one node in front that knows all workers, and workers that know it alone.

#include "services/mesh/mesh.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace godwit {

/// What the node in the middle knows. Workers are put on it, and taken off.
class hub_registry final : public registry {
 public:
  std::optional<node_endpoints> listen() const override {
    return node_endpoints{"tcp://127.0.0.1:*", "tcp://127.0.0.1:*", "tcp://127.0.0.1:*"};
  }
  result<void> announce(const node_record&) override { return {}; }
  void watch(std::function<void(const registry_change&)> watcher) override {
    const std::lock_guard lock(mutex_);
    watcher_ = std::move(watcher);
    for (const auto& [name, record] : known_)
      watcher_({record, true});
  }
  void stop() override {
    const std::lock_guard lock(mutex_);
    watcher_ = nullptr;
  }

  void put(const node_record& record) {
    const std::lock_guard lock(mutex_);
    known_.insert_or_assign(record.name, record);
    if (watcher_)
      watcher_({record, true});
  }
  void take(const node_name& name) {
    const std::lock_guard lock(mutex_);
    const auto found = known_.extract(name);
    if (watcher_ && !found.empty())
      watcher_({found.mapped(), false});
  }

 private:
  std::mutex mutex_;
  std::map<node_name, node_record> known_;
  std::function<void(const registry_change&)> watcher_;
};

/// What a worker knows: the hub.
class spoke_registry final : public registry {
 public:
  using announced = std::function<void(const node_record&)>;

  spoke_registry(node_record hub, node_endpoints where, announced told)
    : hub_(std::move(hub)), where_(std::move(where)), told_(std::move(told)) {}

  std::optional<node_endpoints> listen() const override { return where_; }
  result<void> announce(const node_record& self) override {
    told_(self);
    return {};
  }
  void watch(std::function<void(const registry_change&)> watcher) override { watcher({hub_, true}); }
  void stop() override {}

 private:
  node_record hub_;
  node_endpoints where_;
  announced told_;
};

inline node_endpoints on_any_port() {
  return {"tcp://127.0.0.1:*", "tcp://127.0.0.1:*", "tcp://127.0.0.1:*"};
}

/// Without keys, on loopback.
inline mesh_options star_node(
  const std::string& name, std::vector<std::string> roles, std::shared_ptr<registry> nodes) {
  mesh_options out;
  out.node = node_name(name);
  out.roles = std::move(roles);
  out.models = {{"m", "f"}};
  out.hash_mode = "kv-1";
  out.nodes = std::move(nodes);
  return out;
}

/// The node's actor: what it says of itself.
inline caf::actor spawn_star_status(caf::actor_system& system, const std::string& name,
  std::vector<std::string> roles, std::uint32_t capacity, std::function<bool()> draining) {
  return system.spawn([=](caf::event_based_actor* self) -> caf::behavior {
    return {
      [=](info_atom) {
        return letter<schema::NodeStatus>::make([&](schema::NodeStatus::Builder b) {
          b.setName(name);
          b.setState(draining() ? "draining" : "ready");
          auto list = b.initRoles(static_cast<unsigned>(roles.size()));
          for (unsigned i = 0; i < roles.size(); ++i)
            list.set(i, roles[i]);
          b.setModel("m");
          b.setFingerprint("f");
          b.setCapacity(capacity);
        });
      },
      [=](stop_atom) { self->quit(); },
    };
  });
}

} // namespace godwit
