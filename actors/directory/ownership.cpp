#include "actors/directory/ownership.hpp"

#include "actors/directory/owner_choice.hpp"

#include <utility>

namespace godwit {

namespace {

/// Milliseconds in which a node that shuts down is not asked again for the same session. It may be up again
/// by then.
constexpr std::int64_t given_up_for = 2'000;
/// Sessions of which something is remembered; what is forgotten costs a call or a claim too many.
constexpr std::size_t most_notes = 100'000;

} // namespace

ownership::ownership(
  node_name self, std::shared_ptr<const session_peers> peers, const limits& with, std::int64_t now)
  : self_(std::move(self)), peers_(std::move(peers)), limits_(with),
    settled_at_(now + (peers_ ? with.settle.count() : 0)) {}

ownership::finding ownership::of(const journal_head& head, std::int64_t now) const {
  // The head of a quarantined session may have no owner.
  if (alone() || head.owner == self_ || head.owner.empty())
    return {place::here, {}};
  if (says(given_up_, head, now))
    return {place::gone, {}};
  if (auto directory = peers_->find(head.owner))
    return {place::there, std::move(*directory)};
  if (says(yielded_, head, now))
    return {place::yielded, {}};
  return {settled(now) || lost_.contains(head.owner) ? place::gone : place::unknown, {}};
}

bool ownership::says(const notes& from, const journal_head& head, std::int64_t now) {
  const auto found = from.find(head.session);
  return found != from.end() && found->second.node == head.owner && now < found->second.until;
}

bool ownership::ours_to_take(const session_id& session, const std::vector<node_name>& alive) const {
  const auto* chosen = choose_owner(session, alive);
  return chosen != nullptr && *chosen == self_;
}

bool ownership::is_taken(const journal_head& head, epoch_t known) const {
  return head.owner != self_ && (head.epoch > known || (!alone() && peers_->find(head.owner)));
}

std::vector<node_name> ownership::alive() const {
  return alone() ? std::vector<node_name>{self_} : peers_->alive();
}

void ownership::lost(const node_name& node, std::int64_t now) {
  // It was seen from here until now, so that it is not the way to it that was cut when it took them.
  std::erase_if(yielded_, [&](const auto& entry) { return entry.second.node == node; });
  if (!settled(now))
    lost_.insert(node);
}

void ownership::given_up(const session_id& session, const node_name& by, std::int64_t now) {
  if (given_up_.size() < most_notes || given_up_.contains(session))
    given_up_[session] = {by, now + given_up_for};
}

void ownership::taken(const session_id& session, const node_name& by, std::int64_t now) {
  if (yielded_.size() < most_notes || yielded_.contains(session))
    yielded_[session] = {by, now + limits_.yield.count()};
}

void ownership::tidy(std::int64_t now) {
  if (settled(now))
    lost_.clear();
  std::erase_if(given_up_, [&](const auto& entry) { return now >= entry.second.until; });
  std::erase_if(yielded_, [&](const auto& entry) { return now >= entry.second.until; });
}

} // namespace godwit
