// What a directory does without being asked: recovery, passivation, expiry, and the way down.

#include "actors/directory/directory_shell.hpp"
#include "actors/directory/expiry.hpp"
#include "messages/actor_error.hpp"

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <utility>

namespace godwit::detail {

namespace {

/// Sessions asked to end in one tick.
constexpr std::size_t passivate_at_once = 200;
/// Heads read at once.
constexpr std::size_t heads_at_once = 256;
/// A tick that comes so late was not only slow: milliseconds.
constexpr std::int64_t stopped_for = 1'500;

} // namespace

void directory_shell::begin() {
  if (peers_)
    peers_->watch_lost([weak = caf::actor_cast<caf::weak_actor_ptr>(caf::strong_actor_ptr(self_->ctrl()))](
                         const node_name& node) {
      if (const auto self = weak.lock())
        caf::anon_send(caf::actor_cast<inner_actor>(self), lost_atom::value, node.value);
    });
  ticked_at_ = now();
  if (!owners_.alone())
    rescan_at_ = now() + limits_.settle.count();
  begin_scan();
  self_->delayed_send(self_, limits_.tick, tick_atom::value);
}

void directory_shell::tick() {
  self_->delayed_send(self_, limits_.tick, tick_atom::value);
  // A process that was stopped meanwhile may have lost what it has.
  if (now() - std::exchange(ticked_at_, now()) > limits_.tick.count() + stopped_for)
    doubtful_ = entries_.size();
  owners_.tidy(now());
  unpark_if_news();
  if (draining_)
    return;
  if (rescan_at_ && now() >= *rescan_at_) {
    rescan_at_.reset();
    begin_scan();
  } else if (scanning_ && !trouble_.empty()) {
    scan_page();
  }
  revive_fallen();
  passivate();
  verify();
  sweep();
}

void directory_shell::begin_scan() {
  if (std::exchange(scanning_, true)) {
    scan_again_ = true;
    return;
  }
  scan_after_ = session_id();
  scan_page();
}

/// One page of the journal; the next one after what came meanwhile, so that a long journal keeps nobody
/// waiting. What stops it goes on with the next tick.
void directory_shell::scan_page() {
  if (!scanning_ || draining_)
    return;
  const auto heads = records().list(scan_after_, heads_at_once);
  if (!heads) {
    trouble_ = "the journal cannot be read: " + heads.error().message;
    return;
  }
  const auto alive = owners_.alive();
  for (const auto& head : *heads) {
    if (!resume(head, alive)) {
      trouble_ = "more turns are to be resumed than sessions may be in use";
      return;
    }
    scan_after_ = head.session;
  }
  trouble_.clear();
  if (heads->size() == heads_at_once)
    return self_->send(self_, scan_atom::value);
  scanning_ = false;
  recovered_ = true;
  if (std::exchange(scan_again_, false))
    begin_scan();
}

bool directory_shell::resume(const journal_head& head, const std::vector<node_name>& alive) {
  if (!head.running || head.quarantined || entries_.contains(head.session))
    return true;
  const auto where = owners_.of(head, now()).where;
  const bool ours = where == ownership::place::here;
  if (!ours && (where != ownership::place::gone || !owners_.ours_to_take(head.session, alive)))
    return true;
  if (!live_.room())
    return false;
  spawn(head, now(), !ours);
  ++recovered_count_;
  return true;
}

void directory_shell::revive_fallen() {
  if (fallen_.empty())
    return;
  const auto alive = owners_.alive();
  for (const auto& session : std::exchange(fallen_, {})) {
    const auto head = records().head(session);
    if (head ? !resume(*head, alive) : head.error().code != errc::not_found)
      fallen_.insert(session);
  }
}

void directory_shell::passivate() {
  for (const auto& session : live_.unused(now(), passivate_at_once)) {
    auto& entry = entries_.at(session);
    if (entry.busy)
      continue;
    entry.busy = true;
    const auto answered = [this, session, actor = entry.handle.address()](bool leaves) {
      // Its end may be known before its answer, and another actor be there.
      if (!lives(session, actor))
        return;
      if (leaves)
        forget(session);
      else
        keep(session);
    };
    self_->request(entry.handle, limits_.request_timeout, passivate_atom::value)
      .then(answered, [answered](const caf::error&) { answered(false); });
  }
}

/// Looks at a few sessions in turn, so that each has its turn in the end without a list of all. A session
/// that another node owns is that node's to look after.
void directory_shell::sweep() {
  const auto heads = records().list(sweep_after_, limits_.sweep);
  if (!heads)
    return;
  sweep_after_ = heads->size() < limits_.sweep ? session_id() : heads->back().session;
  const auto alive = owners_.alive();
  for (const auto& head : *heads) {
    // One with an actor looks at the time itself.
    if (head.quarantined || entries_.contains(head.session))
      continue;
    const auto where = owners_.of(head, now()).where;
    const bool ours = where == ownership::place::here;
    if (!ours && (where != ownership::place::gone || !owners_.ours_to_take(head.session, alive)))
      continue;
    const auto verdict = check_expiry(records(), head, config_->time->wall_ms(), limits_.keep_expired);
    if (!verdict)
      continue;
    if (*verdict == expiry::erase)
      static_cast<void>(records().erase(head.session));
    else if (*verdict == expiry::close && live_.room())
      spawn(head, now(), !ours);
    else
      // Nobody went on with it when its node was lost, perhaps because each thought that another would.
      static_cast<void>(resume(head, alive));
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
