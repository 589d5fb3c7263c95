#include "actors/directory/ownership.hpp"

#include "actors/directory/owner_choice.hpp"

#include <utility>

namespace godwit {

namespace {

/// A node that is shutting down, or was started again by then.
constexpr std::int64_t drain_memory = 2'000;
/// Sessions taken from here that are remembered: one that is forgotten may be taken back too soon.
constexpr std::size_t most_yielded = 100'000;

} // namespace

ownership::ownership(
  node_name self, std::shared_ptr<const session_peers> peers, const limits& with, std::int64_t now)
  : self_(std::move(self)), peers_(std::move(peers)), limits_(with),
    settled_at_(now + (peers_ ? with.settle.count() : 0)) {}

ownership::finding ownership::of(const journal_head& head, std::int64_t now) const {
  // The head of a quarantined session may have no owner.
  if (alone() || head.owner == self_ || head.owner.empty())
    return {place::here, {}};
  if (const auto drains = drains_until_.find(head.owner);
      drains != drains_until_.end() && now < drains->second)
    return {place::gone, {}};
  if (auto directory = peers_->find(head.owner))
    return {place::there, std::move(*directory)};
  if (const auto given = yielded_.find(head.session);
      given != yielded_.end() && given->second.to == head.owner && now < given->second.until)
    return {place::yielded, {}};
  return {settled(now) || lost_.contains(head.owner) ? place::gone : place::unknown, {}};
}

bool ownership::ours_to_take(const session_id& session, const std::vector<node_name>& alive) const {
  const auto* chosen = choose_owner(session, alive);
  return chosen != nullptr && *chosen == self_;
}

bool ownership::is_taken(const journal_head& head, epoch_t known) const {
  return head.owner != self_ && head.epoch > known;
}

std::vector<node_name> ownership::alive() const {
  return alone() ? std::vector<node_name>{self_} : peers_->alive();
}

void ownership::lost(const node_name& node, std::int64_t now) {
  drains_until_.erase(node);
  // It was seen from here until now, so that it is not the way to it that was cut when it took them.
  std::erase_if(yielded_, [&](const auto& entry) { return entry.second.to == node; });
  if (!settled(now))
    lost_.insert(node);
}

void ownership::drains(const node_name& node, std::int64_t now) {
  drains_until_[node] = now + drain_memory;
}

void ownership::taken(const session_id& session, const node_name& by, std::int64_t now) {
  if (yielded_.size() < most_yielded || yielded_.contains(session))
    yielded_[session] = {by, now + limits_.yield.count()};
}

void ownership::tidy(std::int64_t now) {
  if (settled(now))
    lost_.clear();
  std::erase_if(drains_until_, [&](const auto& entry) { return now >= entry.second; });
  std::erase_if(yielded_, [&](const auto& entry) { return now >= entry.second.until; });
}

} // namespace godwit
