// What a directory does without being asked: recovery, passivation, expiry, and the way down.

#include "actors/directory/directory_shell.hpp"
#include "actors/directory/expiry.hpp"
#include "messages/actor_error.hpp"

#include <caf/send.hpp>

#include <utility>

namespace godwit::detail {

namespace {

/// Sessions asked to end in one tick.
constexpr std::size_t passivate_at_once = 200;
/// Heads read at once.
constexpr std::size_t heads_at_once = 256;

} // namespace

void directory_shell::begin() {
  recover();
  self_->delayed_send(self_, limits_.tick, tick_atom::value);
}

void directory_shell::tick() {
  self_->delayed_send(self_, limits_.tick, tick_atom::value);
  if (draining_)
    return;
  recover();
  revive_fallen();
  passivate();
  sweep();
}

void directory_shell::recover() {
  while (!recovered_) {
    const auto heads = records().list(recover_after_, heads_at_once);
    if (!heads) {
      trouble_ = "the journal cannot be read: " + heads.error().message;
      return;
    }
    for (const auto& head : *heads) {
      if (head.running && !head.quarantined && !entries_.contains(head.session)) {
        if (!live_.room()) {
          trouble_ = "more turns are to be resumed than sessions may be in use";
          return;
        }
        spawn(head.session, head.tenant.value, now());
        ++recovered_count_;
      }
      recover_after_ = head.session;
    }
    recovered_ = heads->size() < heads_at_once;
  }
  trouble_.clear();
}

void directory_shell::revive_fallen() {
  for (const auto& session : std::exchange(fallen_, {})) {
    if (entries_.contains(session))
      continue;
    const auto head = records().head(session);
    if (head && head->running && live_.room())
      spawn(session, head->tenant.value, now());
    else if (head ? head->running : head.error().code != errc::not_found)
      fallen_.insert(session);
  }
}

void directory_shell::passivate() {
  for (const auto& session : live_.unused(now(), passivate_at_once)) {
    auto& entry = entries_.at(session);
    if (entry.leaving)
      continue;
    entry.leaving = true;
    self_->request(entry.handle, limits_.request_timeout, passivate_atom::value)
      .then(
        [this, session](bool leaves) {
          if (leaves)
            forget(session);
          else
            keep(session);
        },
        [this, session](const caf::error&) { keep(session); });
  }
}

/// Looks at a few sessions in turn, so that each has its turn in the end without a list of all.
void directory_shell::sweep() {
  const auto heads = records().list(sweep_after_, limits_.sweep);
  if (!heads)
    return;
  sweep_after_ = heads->size() < limits_.sweep ? session_id() : heads->back().session;
  for (const auto& head : *heads) {
    // One with an actor looks at the time itself.
    if (head.quarantined || entries_.contains(head.session))
      continue;
    const auto verdict = check_expiry(records(), head, config_->time->wall_ms(), limits_.keep_expired);
    if (!verdict)
      continue;
    if (*verdict == expiry::erase)
      static_cast<void>(records().erase(head.session));
    else if (*verdict == expiry::close && live_.room())
      spawn(head.session, head.tenant.value, now());
  }
}

/// A drain under way: what all sessions answered.
struct directory_shell::draining {
  std::size_t open = 0;
  std::uint32_t remaining = 0;
  std::function<void(std::uint32_t)> done;
};

void directory_shell::drain(std::function<void(std::uint32_t)> done) {
  draining_ = true;
  auto state = std::make_shared<draining>();
  state->open = entries_.size() + 1;
  state->done = std::move(done);
  const auto one = [this, state](std::uint32_t remaining) {
    state->remaining += remaining;
    if (--state->open > 0)
      return;
    // What has not ended is left to the next start, not cancelled.
    stop();
    state->done(state->remaining);
  };
  for (const auto& [session, entry] : entries_)
    self_->request(entry.handle, limits_.drain, drain_atom::value)
      .then([one](const letter<schema::Drained>& drained) { one(drained.read().getRemaining()); },
        [one](const caf::error& why) { one(from_caf_error(why).code == errc::deadline ? 1 : 0); });
  one(0);
}

void directory_shell::stop() {
  for (auto& [session, entry] : entries_)
    caf::anon_send(entry.handle, stop_atom::value);
}

} // namespace godwit::detail
