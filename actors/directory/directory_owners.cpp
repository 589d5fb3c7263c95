// Sessions that other nodes own: who is asked, what is taken over, what was lost to others.

#include "actors/directory/directory_shell.hpp"
#include "actors/session/journal_rules.hpp"
#include "messages/actor_error.hpp"
#include "messages/reasons.hpp"
#include "messages/text.hpp"

#include <algorithm>
#include <utility>

namespace godwit::detail {

namespace {

/// Calls that wait for one session; more are refused.
constexpr std::size_t most_waiting = 64;
/// Calls that wait for the mesh to be known; more are refused.
constexpr std::size_t most_parked = 4'096;
/// Live sessions looked after per tick when there is reason to doubt them.
constexpr std::size_t verify_in_doubt = 256;

letter<schema::LocateRequest> locate_letter(const directory_shell::question& who) {
  return letter<schema::LocateRequest>::make([&](schema::LocateRequest::Builder b) {
    b.setSession(text_view(who.session.value));
    b.setTenant(text_view(who.tenant));
    b.setHops(static_cast<std::uint8_t>(who.hops));
  });
}

tl::unexpected<error> moves() {
  return fail(errc::unavailable, "the session moves from node to node: try again", {},
    std::string(reasons::session_moves));
}

} // namespace

directory_shell::question directory_shell::question_of(schema::LocateRequest::Reader mail) {
  return {session_id(text_of(mail.getSession())), text_of(mail.getTenant()), mail.getHops()};
}

void directory_shell::seek(const question& who, const sought& done) {
  if (const auto found = entries_.find(who.session); found != entries_.end()) {
    auto& entry = found->second;
    if (entry.tenant != who.tenant)
      return done(no_such_session());
    if (entry.busy)
      return wait(entry, who, done);
    if (!overtaken(who.session)) {
      live_.used(who.session, now());
      return done(whereabouts{entry.handle, {}, {}, who.hops});
    }
  }
  const auto head = find_head(who.session);
  if (!head)
    return done(fail(head));
  if (head->tenant.value != who.tenant)
    return done(no_such_session());
  auto owner = owners_.of(*head, now());
  switch (owner.where) {
  case ownership::place::here: {
    const auto revived = revive(*head, now());
    if (!revived)
      return done(fail(revived));
    return done(whereabouts{*revived, {}, {}, who.hops});
  }
  case ownership::place::there:
    return done(whereabouts{{}, std::move(owner.directory), head->owner, who.hops});
  case ownership::place::gone:
    return take(*head, who, done);
  case ownership::place::unknown:
    return park(who, done);
  case ownership::place::yielded:
    return done(fail(errc::unavailable, "the session's node cannot be reached from here: try again", {},
      std::string(reasons::session_moves)));
  }
}

void directory_shell::wait(live_entry& entry, const question& who, const sought& done) {
  if (entry.waiting.size() >= most_waiting)
    return done(fail(errc::overloaded, "too many calls wait for this session"));
  entry.waiting.push_back(
    [this, next = question{who.session, who.tenant, who.hops + 1}, done] { seek(next, done); });
}

/// Claims a session of a node that is gone. Who asked gets it when the journal has said yes: of two nodes
/// that both believe to be the owner one would only answer that it is not.
void directory_shell::take(const journal_head& head, const question& who, const sought& done) {
  if (who.hops >= most_hops)
    return done(moves());
  if (draining_)
    return done(fail(errc::draining, "this node is shutting down"));
  if (!live_.room())
    return done(fail(errc::overloaded, "too many sessions are in use"));
  wait(spawn(head, now(), true), who, done);
}

void directory_shell::park(const question& who, const sought& done) {
  if (parked_.size() >= most_parked)
    return done(fail(errc::overloaded, "too many calls wait for this node to know the others"));
  parked_.push_back({who, done});
}

void directory_shell::unpark() {
  for (const auto& next : std::exchange(parked_, {}))
    seek(next.who, next.done);
}

void directory_shell::unpark_if_news() {
  if (parked_.empty())
    return;
  auto alive = owners_.alive();
  if (owners_.settled(now()) || alive != known_)
    unpark();
  known_ = std::move(alive);
}

void directory_shell::refuse_waiting() {
  for (const auto& call : std::exchange(parked_, {}))
    call.done(fail(errc::draining, "this node is shutting down"));
}

template <class T, class... Words>
void directory_shell::pass_on(const question& who, const whereabouts& found,
  const std::function<void(result<T>)>& done,
  void (directory_shell::*again)(const question&, const std::function<void(result<T>)>&), Words... words) {
  if (found.hops >= most_hops)
    return done(moves());
  if (passing_ >= limits_.passing)
    return done(fail(errc::overloaded, "too many calls wait for other nodes"));
  ++passing_;
  ++passed_count_;
  const question next{who.session, who.tenant, found.hops + 1};
  self_->request(found.there, limits_.request_timeout, words..., locate_letter(next))
    .then(
      [this, done](const T& answer) {
        --passing_;
        done(answer);
      },
      [this, done, again, next, owner = found.owner](const caf::error& why) {
        --passing_;
        const auto failure = from_caf_error(why);
        if (failure.code == errc::draining)
          owners_.given_up(next.session, owner, now());
        else if (failure.code != errc::peer_lost)
          return done(tl::unexpected<error>(failure));
        (this->*again)(next, done);
      });
}

void directory_shell::locate(const question& who, const located& done) {
  seek(who, [this, who, done](const result<whereabouts>& found) {
    if (!found)
      done(fail(found));
    else if (found->here)
      done(found->here);
    else
      pass_on(who, *found, done, &directory_shell::locate);
  });
}

void directory_shell::erase(const question& who, const informed& done) {
  seek(who, [this, who, done](const result<whereabouts>& found) {
    if (!found)
      done(fail(found));
    else if (found->here)
      close_then_erase({who.session, who.tenant, found->hops}, done);
    else
      pass_on(who, *found, done, &directory_shell::erase, erase_atom::value);
  });
}

bool directory_shell::overtaken(const session_id& session) {
  auto& entry = entries_.at(session);
  if (owners_.alone() || now() - entry.checked < limits_.recheck.count())
    return false;
  entry.checked = now();
  const auto head = records().head(session);
  if (head ? !owners_.is_taken(*head, entry.epoch) : head.error().code != errc::not_found)
    return false;
  // Its streams are told, so that their readers look for the session where it is now.
  self_->send_exit(entry.handle,
    to_caf_error(head ? error{errc::stale_epoch, "another node owns the session", {}, {}} : head.error()));
  if (head) {
    ++overtaken_count_;
    owners_.taken(session, head->owner, now());
  }
  forget(session);
  return true;
}

/// Sessions that write learn from the journal that they are another's; these here only listen.
void directory_shell::verify() {
  if (owners_.alone())
    return;
  const auto most = doubtful_ > 0 ? verify_in_doubt : limits_.verify;
  if (most == 0)
    return;
  std::vector<session_id> chosen;
  for (auto next = entries_.upper_bound(verify_after_); next != entries_.end() && chosen.size() < most;
       ++next)
    chosen.push_back(next->first);
  doubtful_ -= std::min(doubtful_, most);
  verify_after_ = chosen.size() < most ? session_id() : chosen.back();
  for (const auto& session : chosen)
    // One that was ended may have made others come or go, by the calls that waited for it.
    if (const auto entry = entries_.find(session); entry != entries_.end() && !entry->second.busy)
      overtaken(session);
}

void directory_shell::node_lost(const node_name& node) {
  owners_.lost(node, now());
  begin_scan();
  // Once more when the others have noticed: whoever was to take a session may have been lost as well.
  rescan_at_ = now() + limits_.settle.count();
  doubtful_ = entries_.size();
  unpark();
}

} // namespace godwit::detail
