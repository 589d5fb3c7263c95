#include "services/link/given_actors.hpp"

#include "messages/reasons.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace godwit::link {

given_actors::given_actors(std::size_t most)
  : most_(most),
    // Begins with the time, so that no number is that of an actor of an earlier start: what others say of
    // theirs may come late.
    last_(static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::system_clock::now().time_since_epoch())
                                       .count())) {}

result<std::uint64_t> given_actors::give(
  const std::string& node, const caf::strong_actor_ptr& actor, const interface_codec& as) {
  const std::lock_guard lock(mutex_);
  const auto key = std::make_tuple(actor->id(), node, &as);
  const auto found = ids_.find(key);
  if (found != ids_.end()) {
    ++all_.at(found->second).count;
    return found->second;
  }
  if (!up_.contains(node))
    return fail(errc::unavailable, "the node " + node + " cannot be reached", {},
      std::string(reasons::node_unreachable));
  if (closed_)
    return fail(errc::draining, "the link to other nodes has stopped");
  if (all_.size() >= most_)
    return fail(errc::resource_exhausted, "other nodes hold too many actors of this one");
  const auto id = ++last_;
  ids_.emplace(key, id);
  all_.emplace(id, given{id, node, {actor, &as}, 1});
  return id;
}

std::optional<reached_actor> given_actors::find(std::uint64_t id, std::string_view node) const {
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(id);
  if (found == all_.end() || found->second.node != node)
    return std::nullopt;
  return found->second.what;
}

bool given_actors::holds(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  return all_.contains(id);
}

std::optional<given_actors::given> given_actors::release(
  std::uint64_t id, std::string_view node, std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(id);
  if (found == all_.end() || found->second.node != node)
    return std::nullopt;
  found->second.count -= std::min(count, found->second.count);
  if (found->second.count != 0)
    return std::nullopt;
  return extract(found);
}

std::vector<given_actors::given> given_actors::ended(caf::actor_id actor) {
  std::vector<given> gone;
  const std::lock_guard lock(mutex_);
  for (;;) {
    const auto found = ids_.lower_bound({actor, std::string(), nullptr});
    if (found == ids_.end() || std::get<0>(found->first) != actor)
      return gone;
    gone.push_back(extract(all_.find(found->second)));
  }
}

void given_actors::node_up(const std::string& node) {
  const std::lock_guard lock(mutex_);
  up_.insert(node);
}

std::pair<bool, std::vector<given_actors::given>> given_actors::node_lost(const std::string& node) {
  std::vector<given> gone;
  const std::lock_guard lock(mutex_);
  if (up_.erase(node) == 0)
    return {false, std::move(gone)};
  for (auto it = all_.begin(); it != all_.end();) {
    const auto next = std::next(it);
    if (it->second.node == node)
      gone.push_back(extract(it));
    it = next;
  }
  return {true, std::move(gone)};
}

std::vector<given_actors::given> given_actors::close() {
  std::vector<given> gone;
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (auto& [id, each] : std::exchange(all_, {}))
    gone.push_back(std::move(each));
  ids_.clear();
  return gone;
}

std::size_t given_actors::size() const {
  const std::lock_guard lock(mutex_);
  return all_.size();
}

given_actors::given given_actors::extract(table::iterator which) {
  auto gone = std::move(which->second);
  ids_.erase(std::make_tuple(gone.what.actor->id(), gone.node, gone.what.codec));
  all_.erase(which);
  return gone;
}

} // namespace godwit::link
