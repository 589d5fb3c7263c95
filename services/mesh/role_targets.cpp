#include "services/mesh/role_targets.hpp"

#include <string_view>
#include <utility>

namespace godwit {

namespace {

/// FNV-1a, 64 bits.
std::uint64_t hash_of(std::string_view text, std::uint64_t state) {
  for (const char each : text) {
    state ^= static_cast<unsigned char>(each);
    state *= 0x100000001b3;
  }
  return state;
}

} // namespace

std::uint64_t rendezvous_weight(const node_name& chooser, const node_name& candidate) {
  // A zero byte, which no name has, stands between the two.
  auto z = hash_of(candidate.value, hash_of({"", 1}, hash_of(chooser.value, 0xcbf29ce484222325)));
  // The last steps of SplitMix64: FNV alone mixes its last bytes badly.
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111eb;
  return z ^ (z >> 31U);
}

void role_targets::choose() {
  const auto keeps = in_use_ ? all_.find(*in_use_) : all_.end();
  if (keeps != all_.end() && !keeps->second.draining)
    return;
  // Of those that do not drain, if there is one; a drained node in use stays when nobody else is there.
  auto best = all_.end();
  for (auto one = all_.begin(); one != all_.end(); ++one) {
    if (best == all_.end()) {
      best = one;
      continue;
    }
    if (one->second.draining != best->second.draining) {
      if (best->second.draining)
        best = one;
      continue;
    }
    if (rendezvous_weight(self_, one->first) > rendezvous_weight(self_, best->first))
      best = one;
  }
  if (best == all_.end()) {
    in_use_.reset();
    return;
  }
  if (keeps != all_.end() && best->second.draining)
    return;
  in_use_ = best->first;
  best->second.was_in_use = true;
}

void role_targets::put(const node_name& node, caf::strong_actor_ptr actor, bool draining) {
  caf::strong_actor_ptr before; // let go without the lock
  const std::lock_guard lock(mutex_);
  if (closed_)
    return;
  auto& place = all_[node];
  before = std::exchange(place.actor, std::move(actor));
  place.draining = draining;
  choose();
}

bool role_targets::remove(const node_name& node) {
  bool used = false;
  {
    target gone;
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(node);
    if (found == all_.end())
      return false;
    gone = std::move(found->second);
    all_.erase(found);
    used = in_use_ == node;
    if (used) {
      in_use_.reset();
      choose();
    }
  }
  if (used) {
    const std::lock_guard lock(watch_mutex_);
    if (watcher_)
      watcher_(node);
  }
  return true;
}

void role_targets::close(error why) {
  decltype(all_) gone;
  const std::lock_guard lock(mutex_);
  closed_ = std::move(why);
  gone.swap(all_);
  in_use_.reset();
}

caf::strong_actor_ptr role_targets::current() const {
  const std::lock_guard lock(mutex_);
  return in_use_ ? all_.at(*in_use_).actor : nullptr;
}

std::vector<caf::strong_actor_ptr> role_targets::listeners() const {
  const std::lock_guard lock(mutex_);
  std::vector<caf::strong_actor_ptr> out;
  if (in_use_)
    out.push_back(all_.at(*in_use_).actor);
  for (const auto& [node, one] : all_)
    if (one.draining && one.was_in_use && node != in_use_)
      out.push_back(one.actor);
  return out;
}

error role_targets::refusal() const {
  const std::lock_guard lock(mutex_);
  if (closed_)
    return *closed_;
  return {errc::unavailable, "no node with the role " + role_ + " is there now", {}, {}};
}

std::optional<node_name> role_targets::in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

std::vector<node_name> role_targets::nodes() const {
  const std::lock_guard lock(mutex_);
  std::vector<node_name> out;
  for (const auto& [node, one] : all_)
    out.push_back(node);
  return out;
}

void role_targets::watch_lost(std::function<void(const node_name&)> watcher) {
  const std::lock_guard lock(watch_mutex_);
  watcher_ = std::move(watcher);
}

} // namespace godwit
