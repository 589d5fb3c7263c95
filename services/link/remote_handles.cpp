#include "services/link/remote_handles.hpp"

#include <iterator>

namespace godwit::link {

namespace {

caf::strong_actor_ptr alive_or_new(caf::weak_actor_ptr& known, const remote_handles::maker& make) {
  auto alive = known.lock();
  if (!alive) {
    alive = make();
    known = caf::actor_cast<caf::weak_actor_ptr>(alive);
  }
  return alive;
}

/// Takes those that `which` wants out of a table; keeps those that still live.
template <class Table, class Which>
void collect(Table& from, Which which, std::vector<caf::strong_actor_ptr>& out) {
  for (auto it = from.begin(); it != from.end();) {
    if (!which(std::get<0>(it->first))) {
      ++it;
      continue;
    }
    if (auto one = it->second.lock())
      out.push_back(std::move(one));
    it = from.erase(it);
  }
}

} // namespace

caf::strong_actor_ptr remote_handles::named(
  const std::string& node, const std::string& name, const interface_codec& codec, const maker& make) {
  const std::lock_guard lock(mutex_);
  return alive_or_new(by_name_[{node, name, &codec}], make);
}

caf::strong_actor_ptr remote_handles::numbered(
  const std::string& node, std::uint64_t id, const interface_codec& codec, const maker& make) {
  const std::lock_guard lock(mutex_);
  auto alive = alive_or_new(by_id_[{node, id, &codec}], make);
  ++static_cast<remote_actor*>(alive->get())->references;
  tidy();
  return alive;
}

std::vector<caf::strong_actor_ptr> remote_handles::find(const std::string& node, std::uint64_t id) const {
  std::vector<caf::strong_actor_ptr> out;
  const std::lock_guard lock(mutex_);
  for (auto it = by_id_.lower_bound({node, id, nullptr});
       it != by_id_.end() && std::get<0>(it->first) == node && std::get<1>(it->first) == id; ++it)
    if (auto alive = it->second.lock())
      out.push_back(std::move(alive));
  return out;
}

std::vector<caf::strong_actor_ptr> remote_handles::lose(const std::string& node) {
  std::vector<caf::strong_actor_ptr> out;
  const std::lock_guard lock(mutex_);
  const auto its = [&node](const std::string& of) { return of == node; };
  collect(by_name_, its, out);
  collect(by_id_, its, out);
  return out;
}

std::vector<caf::strong_actor_ptr> remote_handles::lose_all() {
  std::vector<caf::strong_actor_ptr> out;
  const std::lock_guard lock(mutex_);
  const auto any = [](const std::string&) { return true; };
  collect(by_name_, any, out);
  collect(by_id_, any, out);
  return out;
}

/// Forgets handles that nobody holds, now and then. With the lock.
void remote_handles::tidy() {
  if (by_id_.size() < tidy_at_)
    return;
  for (auto it = by_id_.begin(); it != by_id_.end();)
    it = it->second.lock() ? std::next(it) : by_id_.erase(it);
  tidy_at_ = 2 * by_id_.size() + 64;
}

} // namespace godwit::link
