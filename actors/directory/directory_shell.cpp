#include "actors/directory/directory_shell.hpp"

#include "actors/session/journal_rules.hpp"
#include "actors/session/journal_threads.hpp"
#include "actors/session/session_machine.hpp"
#include "actors/session/session_records.hpp"
#include "actors/session/session_views.hpp"
#include "messages/actor_error.hpp"
#include "messages/text.hpp"

#include <caf/send.hpp>

#include <utility>

namespace godwit::detail {

namespace {

std::shared_ptr<const session_config> sessions_of(directory_config& config) {
  auto sessions = std::move(config.sessions);
  if (config.own_thread && !sessions.clerks) {
    journal_threads::limits bounds;
    bounds.threads = config.limits.clerks;
    sessions.clerks = std::make_shared<journal_threads>(sessions.records, bounds);
  }
  return std::make_shared<const session_config>(std::move(sessions));
}

} // namespace

directory_shell::directory_shell(self_pointer self, directory_config config)
  : self_(self), limits_(config.limits), config_(sessions_of(config)), peers_(std::move(config.peers)),
    live_(limits_.live, limits_.idle, limits_.idle_after),
    owners_(config_->node, peers_, {limits_.settle, limits_.yield}, now()) {}

directory_shell::~directory_shell() {
  if (peers_)
    peers_->watch_lost({});
  stop();
}

result<letter<schema::SessionInfo>> directory_shell::create(schema::SessionSettings::Reader settings) {
  if (draining_)
    return fail(errc::draining, "this node is shutting down and opens no sessions");
  const std::string model = text_of(settings.getModel());
  if (!model.empty() && model != config_->model.id)
    return fail(errc::not_found, "this model is not served here", "model", "model_not_found");
  const auto at = config_->time->wall_ms();
  const session_owner owner{config_->node, config_->incarnation, config_->model.fingerprint};
  session_machine machine(new_session_id(config_->random));
  std::vector<journal_record> first{
    opened_record(settings, config_->model.id, config_->model.fingerprint, at), claimed_record(owner, 1, at)};
  for (const auto& record : first)
    if (auto applied = machine.apply({machine.sequence() + 1, 1, record}); !applied)
      return fail(applied);
  const tenant_id tenant(text_of(machine.settings().getTenant()));
  if (auto opened = records().open(machine.id(), tenant, config_->node, std::move(first), false); !opened)
    return fail(opened);
  return session_info(machine);
}

result<session_actor> directory_shell::revive(const journal_head& head, std::int64_t used) {
  if (draining_)
    return fail(errc::draining, "this node is shutting down");
  if (!live_.room())
    return fail(errc::overloaded, "too many sessions are in use");
  return spawn(head, used, false).handle;
}

result<journal_head> directory_shell::find_head(const session_id& session) const {
  if (!is_session_id(session.value))
    return no_such_session();
  auto head = records().head(session);
  if (head)
    return head;
  if (head.error().code == errc::not_found)
    return no_such_session();
  if (head.error().code != errc::quarantined)
    return fail(head);
  // A quarantined session can still be looked at and erased; only a list shows its head. At most 15 other ids
  // stand between this prefix and the id.
  const auto heads = records().list(session_id(session.value.substr(0, session.value.size() - 1)), 16);
  if (!heads)
    return fail(heads);
  for (const auto& candidate : *heads)
    if (candidate.session == session)
      return candidate;
  return no_such_session();
}

/// @param claim at once: another node's session. Calls wait until the journal has answered
directory_shell::live_entry& directory_shell::spawn(const journal_head& head, std::int64_t used, bool claim) {
  session_start start;
  // Alone, nobody else can have claimed it meanwhile.
  if (!owners_.alone())
    start.epoch = head.epoch;
  start.claim = claim;
  live_entry entry;
  entry.handle = spawn_session(self_->system(), head.session, config_, start);
  entry.tenant = head.tenant.value;
  entry.epoch = head.epoch;
  entry.checked = now();
  entry.busy = claim;
  const auto address = entry.handle.address();
  self_->monitor(entry.handle);
  by_address_.emplace(address, head.session);
  live_.used(head.session, used);
  if (claim)
    self_->request(entry.handle, limits_.request_timeout, status_atom::value)
      .then([this, session = head.session, address](
              const letter<schema::ActorStatus>&) { claimed(session, address, true); },
        [this, session = head.session, address](const caf::error&) { claimed(session, address, false); });
  return entries_.insert_or_assign(head.session, std::move(entry)).first->second;
}

void directory_shell::claimed(const session_id& session, const caf::actor_addr& actor, bool success) {
  if (!lives(session, actor))
    return; // it has ended, and those who waited look elsewhere
  if (!success) {
    // An actor that only was too slow must not go on unknown.
    self_->send(entries_.at(session).handle, stop_atom::value);
    return forget(session);
  }
  ++taken_count_;
  keep(session);
}

bool directory_shell::lives(const session_id& session, const caf::actor_addr& actor) const {
  const auto found = entries_.find(session);
  return found != entries_.end() && found->second.handle.address() == actor;
}

void directory_shell::forget(const session_id& session) {
  const auto found = entries_.find(session);
  if (found == entries_.end())
    return;
  auto waiting = std::move(found->second.waiting);
  self_->demonitor(found->second.handle.address());
  by_address_.erase(found->second.handle.address());
  live_.remove(session);
  entries_.erase(found);
  for (auto& next : waiting)
    next();
}

void directory_shell::keep(const session_id& session) {
  const auto found = entries_.find(session);
  if (found == entries_.end())
    return;
  found->second.busy = false;
  live_.used(session, now());
  for (auto& next : std::exchange(found->second.waiting, {}))
    next();
}

void directory_shell::close_then_erase(const question& who, const informed& done) {
  auto& entry = entries_.at(who.session);
  entry.busy = true;
  auto close =
    letter<schema::CloseSession>::make([](schema::CloseSession::Builder b) { b.setCause("deleted"); });
  const auto answered = [this, who, done, actor = entry.handle.address()](
                          const result<letter<schema::SessionInfo>>& closed) {
    erased(who, actor, closed, done);
  };
  self_->request(entry.handle, limits_.request_timeout, std::move(close))
    .then([answered](const letter<schema::SessionInfo>& closed) { answered(closed); },
      [answered](const caf::error& why) { answered(tl::unexpected<error>(from_caf_error(why))); });
}

void directory_shell::erased(const question& who, const caf::actor_addr& actor,
  const result<letter<schema::SessionInfo>>& closed, const informed& done) {
  if (!closed) {
    // Its end may be known before its answer, and another actor be there.
    const bool there = lives(who.session, actor);
    if (closed.error().code == errc::stale_epoch && who.hops < most_hops) {
      // Another node has it, and is asked.
      if (there)
        forget(who.session);
      return erase({who.session, who.tenant, who.hops + 1}, done);
    }
    if (there)
      keep(who.session);
    return done(fail(closed));
  }
  const auto gone = records().erase(who.session);
  if (const auto found = entries_.find(who.session); found != entries_.end())
    self_->send(found->second.handle, stop_atom::value);
  forget(who.session);
  if (!gone && gone.error().code != errc::not_found)
    return done(fail(gone));
  done(*closed);
}

void directory_shell::session_down(const caf::down_msg& down) {
  const auto found = by_address_.find(down.source);
  if (found == by_address_.end())
    return;
  const auto session = found->second;
  const auto found_epoch = entries_.at(session).epoch;
  // A session that lost its journal is another's now, or nobody's.
  const auto code = down.reason ? from_caf_error(down.reason).code : errc::stale_epoch;
  if (code != errc::stale_epoch && code != errc::not_found && code != errc::quarantined)
    fallen_.insert(session);
  if (code == errc::stale_epoch && !owners_.alone())
    if (const auto head = records().head(session); head && owners_.is_taken(*head, found_epoch)) {
      ++overtaken_count_;
      owners_.taken(session, head->owner, now());
    }
  forget(session);
}

letter<schema::ActorStatus> directory_shell::status() const {
  return letter<schema::ActorStatus>::make([&](schema::ActorStatus::Builder b) {
    b.setName("directory");
    b.setState(draining_ ? "draining" : recovered_ ? "ready" : "starting");
    if (!draining_ && !recovered_)
      b.setReason(trouble_.empty() ? "sessions are being revived" : trouble_);
    const std::pair<const char*, std::size_t> values[] = {{"live_sessions", live_.size()},
      {"recovered_sessions", recovered_count_}, {"taken_sessions", taken_count_},
      {"overtaken_sessions", overtaken_count_}, {"passed_calls", passed_count_},
      {"waiting_calls", parked_.size() + passing_}};
    auto gauges = b.initGauges(static_cast<unsigned>(std::size(values)));
    for (unsigned i = 0; i < gauges.size(); ++i) {
      gauges[i].setName(values[i].first);
      gauges[i].setValue(static_cast<double>(values[i].second));
    }
  });
}

} // namespace godwit::detail
