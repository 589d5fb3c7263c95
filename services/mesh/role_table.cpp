#include "services/mesh/role_table.hpp"

#include "messages/check.hpp"
#include "services/mesh/role_handle.hpp"

#include <caf/exit_reason.hpp>

#include <utility>

namespace godwit {

caf::strong_actor_ptr role_table::handle(
  caf::actor_system& system, const std::string& name, const link::interface_codec& codec, maker remote) {
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(name);
  if (found != all_.end()) {
    GODWIT_CHECK(found->second.codec == &codec); // a role has one interface
    return found->second.handle;
  }
  role made{std::make_shared<role_targets>(name, self_), &codec, std::move(remote), {}};
  if (closed_)
    made.targets->close(*closed_);
  made.handle = make_role_actor(system, made.targets);
  return all_.emplace(name, std::move(made)).first->second.handle;
}

std::shared_ptr<role_targets> role_table::targets(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(name);
  return found == all_.end() ? nullptr : found->second.targets;
}

void role_table::put(const node_name& node, const std::string& name, bool draining) {
  maker remote;
  std::shared_ptr<role_targets> targets;
  {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(name);
    if (found == all_.end())
      return;
    remote = found->second.remote;
    targets = found->second.targets;
  }
  targets->put(node, remote(node), draining);
}

void role_table::remove(const node_name& node, const std::string& name) {
  if (const auto from = targets(name))
    from->remove(node);
}

void role_table::lost(const node_name& node) {
  std::vector<std::shared_ptr<role_targets>> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, one] : all_)
      all.push_back(one.targets);
  }
  for (const auto& each : all)
    each->remove(node);
}

void role_table::close(const error& why) {
  std::vector<std::pair<std::shared_ptr<role_targets>, caf::strong_actor_ptr>> all;
  {
    const std::lock_guard lock(mutex_);
    closed_ = why;
    for (const auto& [name, one] : all_)
      all.emplace_back(one.targets, one.handle);
  }
  for (const auto& [targets, handle] : all) {
    targets->watch_lost({});
    targets->close(why);
    static_cast<role_actor*>(handle->get())
      ->kill_proxy(nullptr, caf::make_error(caf::exit_reason::remote_link_unreachable));
  }
}

std::vector<mesh_figures::role> role_table::figures() const {
  const std::lock_guard lock(mutex_);
  std::vector<mesh_figures::role> out;
  for (const auto& [name, one] : all_) {
    const auto used = one.targets->in_use();
    out.push_back({name, one.targets->nodes().size(), used ? used->value : std::string(),
      one.targets->refused.load(), one.targets->dropped.load()});
  }
  return out;
}

} // namespace godwit
