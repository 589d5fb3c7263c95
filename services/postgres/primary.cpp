#include "services/postgres/primary.hpp"

#include <algorithm>

namespace godwit::postgres {

namespace {

using std::chrono::milliseconds;

constexpr const char* permission_denied = "42501";

std::string words_of(field from) {
  return from ? std::string(*from) : std::string();
}

/// All that is asked of a server before it is used, in one row.
constexpr const char* question = R"(
SELECT current_setting('fsync'), current_setting('synchronous_commit'),
  current_setting('synchronous_standby_names'),
  (SELECT count(*) FROM pg_stat_replication),
  (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')),
  (SELECT count(*) FROM pg_stat_replication WHERE sync_state IS NULL),
  pg_postmaster_start_time()::text, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8),
  to_regclass($1) IS NOT NULL)";

/// Of this session; nothing of a server's own settings may turn our statements into others.
statement session_settings(milliseconds statement_time, bool durable) {
  std::string sql = "SELECT set_config('search_path', 'pg_catalog', false), set_config('jit', 'off', false), "
                    "set_config('statement_timeout', $1, false), "
                    "set_config('default_transaction_isolation', 'read committed', false), "
                    "set_config('idle_in_transaction_session_timeout', '10000', false)";
  if (!durable)
    sql += ", set_config('synchronous_commit', 'off', false)";
  return {std::move(sql), false, {text(std::to_string(statement_time.count()))}};
}

} // namespace

error error_of(const outcome& failed, const address& of) {
  auto message = without_password(failed.message, of);
  if (failed.what == outcome::kind::pending)
    return {errc::deadline, "the database did not answer in time", "", ""};
  if (failed.state == permission_denied || failed.state.starts_with("28"))
    return {errc::permission, std::move(message), "", ""};
  if (failed.state.starts_with("53"))
    return {errc::resource_exhausted, std::move(message), "", ""};
  if (failed.state == "57014" || failed.state == "55P03")
    return {errc::deadline, std::move(message), "", ""};
  return {errc::io, std::move(message), "", ""};
}

std::string primary_finder::timeline() const {
  const std::lock_guard lock(mutex_);
  return timeline_;
}

result<primary> primary_finder::find(const patience& how) {
  std::size_t first = 0;
  {
    const std::lock_guard lock(mutex_);
    first = last_;
  }
  result<primary> found = fail(errc::deadline, "no time to look for the database");
  for (std::size_t i = 0; i < servers() && !how.over(); ++i) {
    const auto which = (first + i) % servers();
    const patience one{std::min(how.until, clock::now() + connect_time()), how.closing};
    auto entered = enter(options_.servers.servers[which], depth::ready, one, how);
    if (entered) {
      const std::lock_guard lock(mutex_);
      last_ = which;
      timeline_ = std::max(timeline_, entered->timeline);
      return entered;
    }
    // A reason that waiting does not mend says more than a server that is not there.
    if (i == 0 || entered.error().code == errc::unsupported || entered.error().code == errc::permission
        || (found.error().code != errc::unsupported && found.error().code != errc::permission))
      found = std::move(entered);
  }
  return found;
}

std::optional<bool> primary_finder::at_work(const primary& on, const patience& how) {
  for (const auto& server : options_.servers.servers) {
    const patience one{std::min(how.until, clock::now() + connect_time()), how.closing};
    auto entered = enter(server, depth::bare, one, how);
    if (!entered)
      continue;
    if (entered->started != on.started)
      return false;
    const auto answer = entered->line->run({{"SELECT count(*) FROM pg_stat_activity WHERE pid = $1::int8 AND "
                                             "state = 'active'",
                                             false, {value(std::int64_t{on.line->server_process()})}}},
      one);
    if (answer.what == outcome::kind::done && answer.results.size() == 1)
      return number_of(answer.results[0].at(0, 0)).value_or(0) > 0;
  }
  return std::nullopt;
}

result<primary> primary_finder::enter(
  const server_address& server, depth how_far, const patience& how, const patience& all) {
  auto line = connection::open(server, options_.servers, how);
  if (!line)
    return fail(line);
  primary out;
  out.line = std::move(*line);
  out.server = server.name;
  const auto broken = [&](const outcome& failed) {
    auto why = error_of(failed, options_.servers);
    why.message = server.name + ": " + why.message;
    return tl::unexpected<error>(std::move(why));
  };
  const auto answer =
    out.line->run({session_settings(options_.statement_time, options_.durable),
                    {question, false, {text(options_.schema + "." + options_.tables.version_table)}}},
      how);
  if (answer.what != outcome::kind::done)
    return broken(answer);
  if (answer.results.size() != 2 || answer.results[1].size() != 1)
    return fail(errc::corrupt, server.name + ": not the answer of a PostgreSQL server");
  const auto& row = answer.results[1];
  const auto there = truth_of(row.at(0, 8));
  out.settings = {words_of(row.at(0, 0)), words_of(row.at(0, 1)), words_of(row.at(0, 2)),
    number_of(row.at(0, 3)).value_or(0), number_of(row.at(0, 4)).value_or(0),
    number_of(row.at(0, 5)).value_or(0)};
  out.started = words_of(row.at(0, 6));
  out.timeline = words_of(row.at(0, 7));
  if (out.started.empty() || out.timeline.empty() || !there)
    return fail(errc::corrupt, server.name + ": not the answer of a PostgreSQL server");
  if (out.timeline < timeline())
    return fail(errc::io, server.name + ": takes writes though another server was promoted in its place");
  if (how_far == depth::bare)
    return out;

  auto promise = promise_of(out.settings, options_.allow_unsafe || !options_.durable);
  if (!promise)
    return fail(promise.error().code, server.name + ": " + promise.error().message);
  out.promise = std::move(*promise);
  if (auto good = check_tables(out, *there, all); !good)
    return fail(good.error().code, server.name + ": " + good.error().message);

  out.line->prepare(options_.prepared);
  if (const auto prepared = out.line->wait(all); prepared.what != outcome::kind::done)
    return broken(prepared);
  return out;
}

result<std::int64_t> primary_finder::version(primary& entered, const patience& how) {
  const auto answer = entered.line->run(
    {{"SELECT version FROM " + options_.schema + "." + options_.tables.version_table, false, {}}}, how);
  if (answer.what != outcome::kind::done)
    return tl::unexpected<error>(error_of(answer, options_.servers));
  const auto number = answer.results.size() == 1 ? number_of(answer.results[0].at(0, 0)) : std::nullopt;
  if (!number || *number < 1)
    return fail(errc::corrupt, options_.tables.what + " do not say which version they have");
  return *number;
}

result<void> primary_finder::check_tables(primary& entered, bool there, const patience& how) {
  if (there) {
    const auto now = version(entered, how);
    if (!now)
      return fail(now);
    const auto known = options_.tables.version;
    if (*now > known)
      return fail(errc::unsupported, options_.tables.what + " have version " + std::to_string(*now)
                                       + "; this version of godwit knows versions up to "
                                       + std::to_string(known));
    if (*now == known)
      return {};
  }
  auto made = migrate(entered, how);
  if (!made && made.error().code == errc::permission)
    return fail(errc::permission,
      options_.tables.what
        + " are not there or of an older version, and this role may not make them; start one node as their "
          "owner first");
  return made;
}

result<void> primary_finder::migrate(primary& entered, const patience& how) {
  const auto run = [&](std::vector<statement> statements) -> result<std::vector<rows>> {
    auto answer = entered.line->run(statements, how);
    if (answer.what != outcome::kind::done)
      return tl::unexpected<error>(error_of(answer, options_.servers));
    return std::move(answer.results);
  };
  // The lock is the session's, so that one node makes the tables and others wait and then find them.
  const auto lock = value(migration_lock(options_.schema));
  if (auto locked = run({{"SELECT pg_advisory_lock($1::int8)", false, {lock}}}); !locked)
    return fail(locked);
  const auto steps = [&]() -> result<void> {
    const auto found = run({{"SELECT to_regclass($1) IS NOT NULL", false,
      {text(options_.schema + "." + options_.tables.version_table)}}});
    if (!found)
      return fail(found);
    std::int64_t from = 0;
    if (truth_of((*found)[0].at(0, 0)).value_or(false)) {
      const auto now = version(entered, how);
      if (!now)
        return fail(now);
      from = *now;
    }
    for (auto to = from + 1; to <= options_.tables.version; ++to) {
      std::vector<statement> statements;
      for (auto& one : options_.tables.steps(to, options_.schema))
        statements.push_back({std::move(one), false, {}});
      if (auto done = run(std::move(statements)); !done)
        return fail(done);
    }
    return {};
  };
  auto made = steps();
  if (auto unlocked = run({{"SELECT pg_advisory_unlock($1::int8)", false, {lock}}}); made && !unlocked)
    return fail(unlocked);
  return made;
}

} // namespace godwit::postgres
