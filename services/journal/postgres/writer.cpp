#include "services/journal/postgres/writer.hpp"

#include "services/journal/postgres/transaction.hpp"

#include <algorithm>
#include <random>
#include <thread>

namespace godwit::postgres {

namespace {

using std::chrono::milliseconds;

/// While the journal is being closed, for what is under way.
constexpr milliseconds closing_time{2'000};

constexpr std::size_t most_tries = 20;

std::string random_bytes() {
  std::random_device device;
  std::string out;
  for (int i = 0; i < 2; ++i) {
    const auto number = device();
    out.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  return out;
}

error unsure_error() {
  return {errc::io, "the database did not say whether the records are stored", "", ""};
}

} // namespace

writer::writer(writer_options options, primary_finder& servers, const address& of, journal_counters& counters,
  std::function<void(std::string_view)> warn, const std::atomic<bool>& closing)
  : options_(options), servers_(servers), address_(of), counters_(counters), warn_(std::move(warn)),
    closing_(closing), mark_(random_bytes()) {}

void writer::begin(primary first) {
  promise_ = first.promise;
  now_ = std::move(first);
}

bool writer::unsure(const session_id& session) const {
  const std::lock_guard lock(mutex_);
  return unsure_.contains(session);
}

std::string writer::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

void writer::say(std::string text) {
  warn_(without_password(std::move(text), address_));
}

/// Of this process and this group of requests.
void writer::next_mark() {
  constexpr std::size_t random_part = 8;
  mark_.resize(random_part);
  const auto number = ++marks_;
  mark_.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::vector<result<journal_head>> writer::write(
  const std::vector<const write_request*>& batch, const write_batch::is_quarantined& quarantined) {
  const bool only_looks = std::all_of(
    batch.begin(), batch.end(), [](const auto* one) { return one->what == write_request::change::nothing; });
  // Somebody who asks only whether the database is back does not wait for it.
  const auto time = only_looks ? std::min(options_.deadline, milliseconds(500)) : options_.deadline;
  const patience how{clock::now() + time, &closing_};
  next_mark();
  tries_ = 0;
  write_batch work(batch, quarantined);
  for (;;) {
    if (clock::now() >= how.until || !ready(how)) {
      doubt(work.doubtful_sessions());
      work.give_up(failure_, unsure_error());
      break;
    }
    const auto step = work.next();
    if (step.size() == 0 || !transact(work, step, how))
      break;
  }
  return work.take_verdicts();
}

/// @returns false when the batch is over
bool writer::transact(write_batch& work, const plan& step, const patience& how) {
  now_->line->send(statements_of(step, mark_));
  const auto end = await(how);
  switch (end.what) {
  case outcome::kind::done: {
    const auto said = answers_of(step, mark_, end.results);
    if (!said) {
      lose({outcome::kind::lost, {}, {}, said.error().message});
      work.unknown(step);
      doubt(work.doubtful_sessions());
      work.give_up(failure_, unsure_error());
      return false;
    }
    counters_.syncs += step.writes() ? 1U : 0U;
    work.committed(step, *said);
    recovered();
    return true;
  }
  case outcome::kind::refused:
    return refused(work, step, end);
  case outcome::kind::lost:
    lose(end);
    work.unknown(step);
    // From now on nobody takes what the database shows of them for the truth, until it is settled.
    doubt(work.doubtful_sessions());
    return true;
  case outcome::kind::pending:
    in_flight_ = true;
    work.unknown(step);
    doubt(work.doubtful_sessions());
    work.give_up(failure_, unsure_error());
    return false;
  }
  return false;
}

bool writer::refused(write_batch& work, const plan& step, const outcome& why) {
  // Two transactions met, and this one gave way.
  if (why.state.starts_with("40") && ++tries_ < most_tries)
    return true;
  const auto reason = error_of(why, address_);
  say("the database refused: " + reason.message);
  if (why.state.starts_with("22") || why.state.starts_with("23")) {
    work.rejected(step, {errc::io, "the database refused the records", "", ""});
    return true;
  }
  ++counters_.failures;
  stall("the database refuses to be written");
  // The next call looks whether that is still so.
  dirty_ = true;
  failure_ = {reason.code == errc::permission ? errc::io : reason.code, "the database refused", "", ""};
  doubt(work.doubtful_sessions());
  work.give_up(failure_, unsure_error());
  return false;
}

/// Makes sure of a connection on which nothing is under way and nothing unknown is left behind.
bool writer::ready(const patience& how) {
  while (true) {
    if (now_ && in_flight_) {
      const auto end = await(how);
      if (end.what == outcome::kind::pending)
        return false;
      in_flight_ = false;
      dirty_ = true;
      if (end.what == outcome::kind::lost)
        lose(end);
    }
    if (!now_ && !connect(how))
      return false;
    if (!dirty_)
      return true;
    if (settle(how))
      return true;
    if (now_ || how.over())
      return false;
  }
}

bool writer::connect(const patience& how) {
  while (!how.over()) {
    if (const auto moment = clock::now(); moment < next_attempt_) {
      std::this_thread::sleep_for(std::min<clock::duration>(
        {next_attempt_ - moment, how.until - moment, std::chrono::milliseconds(20)}));
      continue;
    }
    auto found = servers_.find(how);
    if (found) {
      if (found->promise != promise_) {
        promise_ = found->promise;
        say("the database at " + found->server + ": " + promise_);
      }
      now_ = std::move(*found);
      pause_ = milliseconds(0);
      next_attempt_ = {};
      return true;
    }
    if (!counters_.failed)
      ++counters_.failures;
    if (found.error().message != last_reason_)
      say("the journal finds no database: " + found.error().message);
    last_reason_ = found.error().message;
    stall("no database server answers");
    failure_ = {errc::io, "no database server answers", "", ""};
    pause_ = std::clamp(2 * pause_, options_.first_retry, options_.last_retry);
    next_attempt_ = clock::now() + pause_;
  }
  return false;
}

/// Waits until what is unknown can be read from the heads, and until it will stay.
bool writer::settle(const patience& how) {
  std::vector<session_id> sessions;
  {
    const std::lock_guard lock(mutex_);
    sessions.assign(unsure_.begin(), unsure_.end());
  }
  now_->line->send(settling(sessions));
  const auto end = await(how);
  switch (end.what) {
  case outcome::kind::done: {
    dirty_ = false;
    {
      const std::lock_guard lock(mutex_);
      unsure_.clear();
    }
    recovered();
    return true;
  }
  case outcome::kind::refused:
    stall("the database refuses to be written");
    failure_ = {errc::io, "the database refused", "", ""};
    return false;
  case outcome::kind::lost:
    lose(end);
    return false;
  case outcome::kind::pending:
    in_flight_ = true;
    return false;
  }
  return false;
}

/// Waits for the end of what was sent. A connection says nothing while a commit waits for standbys, and
/// nothing when its server hangs or was replaced: after a while others are asked.
outcome writer::await(const patience& how) {
  const auto began = clock::now();
  auto suspicious = began + options_.suspicion;
  std::optional<clock::time_point> closed;
  for (;;) {
    if (how.closed() && !closed)
      closed = clock::now();
    const auto end_of_all = closed ? std::min(how.until, *closed + closing_time) : how.until;
    // Without the flag: what is under way is waited for while the journal closes.
    const auto slice = std::min({end_of_all, suspicious, clock::now() + milliseconds(100)});
    auto end = now_->line->wait({slice, nullptr});
    if (end.what != outcome::kind::pending)
      return end;
    const auto moment = clock::now();
    if (moment >= end_of_all)
      return end;
    if (moment < suspicious)
      continue;
    stall("the database does not confirm what it was given; are its standbys there?");
    failure_ = {errc::io, "the database does not confirm what it was given", "", ""};
    if (!still_at_work(how)) {
      // The answer may have come meanwhile.
      end = now_->line->wait({clock::now() + milliseconds(100), nullptr});
      if (end.what != outcome::kind::pending)
        return end;
      return {outcome::kind::lost, {}, {}, "the server no longer works on what it was given"};
    }
    suspicious = clock::now() + options_.suspicion;
  }
}

bool writer::still_at_work(const patience& how) {
  return servers_.at_work(*now_, how).value_or(true);
}

void writer::lose(const outcome& how) {
  ++counters_.failures;
  say("the connection to the database at " + now_->server + " ended: " + how.message);
  now_.reset();
  in_flight_ = false;
  dirty_ = true;
  stall("no database server answers");
}

void writer::stall(std::string why) {
  counters_.failed = true;
  const std::lock_guard lock(mutex_);
  trouble_ = std::move(why);
}

void writer::recovered() {
  last_reason_.clear();
  if (!counters_.failed)
    return;
  counters_.failed = false;
  ++counters_.recoveries;
  say("the journal can write again, to the database at " + now_->server);
  const std::lock_guard lock(mutex_);
  trouble_.clear();
}

void writer::doubt(const std::vector<session_id>& sessions) {
  dirty_ = dirty_ || !sessions.empty();
  const std::lock_guard lock(mutex_);
  unsure_.insert(sessions.begin(), sessions.end());
}

} // namespace godwit::postgres
