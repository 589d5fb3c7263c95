#include "actors/directory/directory_shell.hpp"

#include "actors/session/session_machine.hpp"
#include "actors/session/session_records.hpp"
#include "actors/session/session_views.hpp"
#include "messages/actor_error.hpp"
#include "messages/text.hpp"

#include <caf/send.hpp>

#include <utility>

namespace godwit::detail {

namespace {

/// Calls that wait for one session to have gone; more are refused.
constexpr std::size_t most_waiting = 64;

tl::unexpected<error> no_such_session() {
  return fail(errc::not_found, "there is no such session");
}

} // namespace

directory_shell::directory_shell(self_pointer self, directory_config config)
  : self_(self), limits_(config.limits),
    config_(std::make_shared<const session_config>(std::move(config.sessions))),
    live_(limits_.live, limits_.idle, limits_.idle_after) {}

directory_shell::~directory_shell() {
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

void directory_shell::locate(const session_id& session, const std::string& tenant, located done) {
  const auto found = entries_.find(session);
  if (found == entries_.end())
    return done(revive(session, tenant, now()));
  auto& entry = found->second;
  if (entry.tenant != tenant)
    return done(no_such_session());
  if (!entry.leaving) {
    live_.used(session, now());
    return done(entry.handle);
  }
  if (entry.waiting.size() >= most_waiting)
    return done(fail(errc::overloaded, "too many calls wait for this session"));
  entry.waiting.push_back(
    [this, session, tenant, done = std::move(done)]() { locate(session, tenant, done); });
}

result<session_actor> directory_shell::revive(
  const session_id& session, const std::string& tenant, std::int64_t used) {
  if (!is_session_id(session.value))
    return no_such_session();
  const auto head = find_head(session);
  if (!head)
    return fail(head);
  if (head->tenant.value != tenant)
    return no_such_session();
  if (draining_)
    return fail(errc::draining, "this node is shutting down");
  if (!live_.room())
    return fail(errc::overloaded, "too many sessions are in use");
  return spawn(session, tenant, used).handle;
}

result<journal_head> directory_shell::find_head(const session_id& session) const {
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

directory_shell::live_entry& directory_shell::spawn(
  const session_id& session, const std::string& tenant, std::int64_t used) {
  live_entry entry;
  entry.handle = spawn_session(self_->system(), session, config_);
  entry.tenant = tenant;
  self_->monitor(entry.handle);
  by_address_.emplace(entry.handle.address(), session);
  live_.used(session, used);
  return entries_.insert_or_assign(session, std::move(entry)).first->second;
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
  found->second.leaving = false;
  live_.used(session, now());
  for (auto& next : std::exchange(found->second.waiting, {}))
    next();
}

void directory_shell::erase(const session_id& session, const std::string& tenant, informed done) {
  locate(session, tenant, [this, session, done = std::move(done)](result<session_actor> found) {
    if (!found)
      return done(fail(found));
    close_then_erase(session, done);
  });
}

void directory_shell::close_then_erase(const session_id& session, informed done) {
  auto& entry = entries_.at(session);
  entry.leaving = true;
  auto close =
    letter<schema::CloseSession>::make([](schema::CloseSession::Builder b) { b.setCause("deleted"); });
  self_->request(entry.handle, limits_.request_timeout, std::move(close))
    .then([this, session, done](const letter<schema::SessionInfo>& closed) { erased(session, closed, done); },
      [this, session, done](
        const caf::error& why) { erased(session, tl::unexpected<error>(from_caf_error(why)), done); });
}

void directory_shell::erased(
  const session_id& session, const result<letter<schema::SessionInfo>>& closed, const informed& done) {
  if (!closed) {
    keep(session);
    return done(fail(closed));
  }
  const auto gone = records().erase(session);
  if (const auto found = entries_.find(session); found != entries_.end())
    self_->send(found->second.handle, stop_atom::value);
  forget(session);
  if (!gone && gone.error().code != errc::not_found)
    return done(fail(gone));
  done(*closed);
}

void directory_shell::session_down(const caf::down_msg& down) {
  const auto found = by_address_.find(down.source);
  if (found == by_address_.end())
    return;
  const auto session = found->second;
  // A session that lost its journal is another's now, or nobody's.
  const auto code = down.reason ? from_caf_error(down.reason).code : errc::stale_epoch;
  if (code != errc::stale_epoch && code != errc::not_found && code != errc::quarantined)
    fallen_.insert(session);
  forget(session);
}

letter<schema::ActorStatus> directory_shell::status() const {
  return letter<schema::ActorStatus>::make([&](schema::ActorStatus::Builder b) {
    b.setName("directory");
    b.setState(draining_ ? "draining" : recovered_ ? "ready" : "starting");
    if (!draining_ && !recovered_)
      b.setReason(trouble_.empty() ? "sessions are being revived" : trouble_);
    auto gauges = b.initGauges(2);
    gauges[0].setName("live_sessions");
    gauges[0].setValue(static_cast<double>(live_.size()));
    gauges[1].setName("recovered_sessions");
    gauges[1].setValue(static_cast<double>(recovered_count_));
  });
}

} // namespace godwit::detail
