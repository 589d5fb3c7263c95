#include "services/journal/postgres/readers.hpp"

#include "actors/session/journal_rules.hpp"
#include "services/journal/codec.hpp"
#include "services/journal/postgres/transaction.hpp"

#include <algorithm>
#include <limits>

namespace godwit::postgres {

namespace {

using std::chrono::milliseconds;

/// After no server was found, nobody looks for one for twice the time that this took, within these bounds: a
/// caller may be a thread that many wait for.
constexpr milliseconds shortest_down_time{300};
constexpr milliseconds longest_down_time{3'000};

clock::time_point down_until(clock::time_point began) {
  const auto now = clock::now();
  return now + std::clamp<clock::duration>(2 * (now - began), shortest_down_time, longest_down_time);
}

tl::unexpected<error> no_server() {
  return fail(errc::io, "no database server answers");
}

std::int64_t limit_of(std::size_t limit) {
  return static_cast<std::int64_t>(
    std::min<std::uint64_t>(limit, static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())));
}

} // namespace

result<primary> readers::take(const patience& how, bool fresh) {
  const auto began = clock::now();
  std::unique_lock lock(mutex_);
  if (began < down_until_)
    return no_server();
  const auto timeline = servers_.timeline();
  for (;;) {
    while (!idle_.empty()) {
      auto one = std::move(idle_.back());
      idle_.pop_back();
      // After a failed read, or a promotion elsewhere, those that were made before are of no use.
      if (!fresh && one.timeline >= timeline)
        return one;
      --made_;
    }
    if (!waiting_.empty()) {
      auto one = std::move(waiting_.back());
      waiting_.pop_back();
      lock.unlock();
      return made_sure(std::move(one), how);
    }
    if (made_ < most_)
      break;
    if (free_.wait_until(lock, how.until) == std::cv_status::timeout)
      return fail(errc::deadline, "too many wait for the database");
  }
  ++made_;
  lock.unlock();
  auto found = servers_.find(how);
  if (!found) {
    drop();
    lock.lock();
    down_until_ = down_until(began);
    return no_server();
  }
  // What a server shows after a restart may have been acknowledged to nobody, since no standby has it.
  found->line->send({{name_of(query::barrier), true, {}}});
  return made_sure(std::move(*found), how);
}

/// Waits until all that a new connection can see will last.
result<primary> readers::made_sure(primary one, const patience& how) {
  const auto began = clock::now();
  const auto end = one.line->wait(how);
  if (end.what == outcome::kind::done)
    return one;
  if (end.what != outcome::kind::pending) {
    drop();
    return no_server();
  }
  // Dropped, it would go on waiting at the server, and so would the next ones.
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(one));
  down_until_ = down_until(began);
  return fail(errc::deadline, "the database did not answer in time");
}

void readers::give_back(primary one) {
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(one));
  }
  free_.notify_one();
}

void readers::drop() {
  {
    const std::lock_guard lock(mutex_);
    --made_;
  }
  free_.notify_one();
}

result<rows> readers::ask(query what, std::vector<parameter> parameters) {
  const patience how{clock::now() + deadline_, &closing_};
  const std::vector<statement> statements{{name_of(what), true, std::move(parameters)}};
  // A connection may have ended while nobody used it; a new one need not.
  for (const bool fresh : {false, true}) {
    auto one = take(how, fresh);
    if (!one)
      return fail(one);
    auto answer = one->line->run(statements, how);
    if (answer.what == outcome::kind::done && answer.results.size() == 1) {
      give_back(std::move(*one));
      return std::move(answer.results[0]);
    }
    if (answer.what == outcome::kind::refused) {
      give_back(std::move(*one));
      return fail(error_of(answer, address_).code == errc::deadline ? errc::deadline : errc::io,
        "the database refused to be read");
    }
    drop();
    if (answer.what == outcome::kind::pending)
      return fail(errc::deadline, "the database did not answer in time");
  }
  return no_server();
}

result<std::optional<journal_head>> readers::head(const session_id& session) {
  const auto answer = ask(query::head, {value(session.value)});
  if (!answer)
    return fail(answer);
  if (answer->size() == 0)
    return std::optional<journal_head>();
  auto head = head_at(session, *answer, 0, 0);
  if (!head)
    return fail(head);
  return std::optional(std::move(*head));
}

result<std::vector<placed_record>> readers::read(
  const session_id& session, sequence_number from, std::size_t limit) {
  const auto first = std::max<sequence_number>(from, 1);
  // A place that no number of the database reaches is behind every end.
  const auto asked = static_cast<std::int64_t>(
    std::min<std::uint64_t>(first, static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())));
  const auto answer = ask(query::read, {value(session.value), value(asked), value(limit_of(limit))});
  if (!answer)
    return fail(answer);
  if (answer->size() == 0)
    return no_such_session();
  const auto end = number_of(answer->at(0, 0));
  if (!end || *end < 1)
    return fail(errc::corrupt, "a head does not check");
  const auto last = static_cast<sequence_number>(*end);
  std::vector<placed_record> found;
  const auto expected = first > last ? 0 : std::min<std::uint64_t>(limit, last - first + 1);
  for (std::size_t row = 0; row < answer->size() && found.size() < expected; ++row) {
    const auto place = number_of(answer->at(row, 1));
    const auto body = answer->at(row, 2);
    if (!place || !body || static_cast<sequence_number>(*place) != first + found.size())
      return fail(errc::corrupt, "a record is missing");
    auto record = journal_codec::open_record(session, first + found.size(), *body);
    if (!record)
      return fail(record);
    found.push_back(std::move(*record));
  }
  if (found.size() != expected)
    return fail(errc::corrupt, "a record is missing");
  return found;
}

result<std::vector<journal_head>> readers::list(const session_id& after, std::size_t limit) {
  const auto answer = ask(query::list, {value(after.value), value(limit_of(limit))});
  if (!answer)
    return fail(answer);
  std::vector<journal_head> heads;
  for (std::size_t row = 0; row < answer->size(); ++row) {
    const auto name = answer->at(row, 0);
    if (!name)
      return fail(errc::corrupt, "a head has no name");
    const session_id session{std::string(*name)};
    auto head = head_at(session, *answer, row, 1);
    if (head)
      heads.push_back(std::move(*head));
    else
      heads.push_back({.session = session, .tenant = {}, .owner = {}, .quarantined = true});
  }
  return heads;
}

} // namespace godwit::postgres
