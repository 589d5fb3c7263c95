#include "services/journal/postgres/batch.hpp"

#include "actors/session/journal_rules.hpp"

#include <algorithm>

namespace godwit::postgres {

namespace {

using change = write_request::change;

/// Often enough for any race that ends.
constexpr std::size_t most_misses = 100;

std::vector<const journal_record*> pointers(const std::vector<journal_record>& records) {
  std::vector<const journal_record*> out;
  for (const auto& one : records)
    out.push_back(&one);
  return out;
}

} // namespace

write_batch::write_batch(const std::vector<const write_request*>& requests, is_quarantined quarantined)
  : requests_(requests), quarantined_(std::move(quarantined)),
    verdicts_(requests.size(), result<journal_head>(journal_head())) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i]->what == change::nothing)
      continue;
    auto& one = lines_[requests[i]->session];
    one.session = requests[i]->session;
    one.requests.push_back(i);
  }
}

void write_batch::answer(line& of, result<journal_head> verdict) {
  verdicts_[of.requests[of.at++]] = std::move(verdict);
}

/// What was known of the session decides against its next request.
void write_batch::refuse(line& of, error why) {
  of.tried = false;
  of.group = 0;
  answer(of, tl::unexpected<error>(std::move(why)));
}

/// Answers what needs no transaction. @returns false when the session has nothing left
bool write_batch::judge(line& of) {
  while (of.at < of.requests.size()) {
    const auto& request = front(of);
    // What is under way already is finished first.
    if (of.doubtful)
      return true;
    if (request.what != change::erase && quarantined_(of.session)) {
      refuse(of, session_quarantined().value());
      continue;
    }
    if (!of.known) {
      // The owner and the place of a claim are the head's.
      of.look = of.look || request.what == change::claim;
      return true;
    }
    if (request.what == change::open) {
      if (!of.head)
        return true;
      refuse(of, session_exists().value());
      continue;
    }
    if (!of.head) {
      refuse(of, no_such_session().value());
      continue;
    }
    if (request.what == change::erase)
      return true;
    const auto good = request.what == change::claim
                        ? check_claim(*of.head, request.epoch)
                        : check_fence(*of.head, {of.session, request.expected, request.epoch, {}, false});
    if (good)
      return true;
    refuse(of, good.error());
  }
  return false;
}

plan write_batch::next() {
  plan out;
  for (auto& [name, one] : lines_) {
    if (!judge(one))
      continue;
    add_step(one, out);
    out.settles = out.settles || one.doubtful;
    if (alone_)
      break;
  }
  return out;
}

void write_batch::add_step(line& of, plan& to) {
  if (of.doubtful || of.look) {
    to.looks.push_back({of.session, of.doubtful ? of.place : 0});
    return;
  }
  const auto& request = front(of);
  of.group = 1;
  if (request.what == change::open) {
    of.place = 1;
    to.opens.push_back(
      {of.session, request.tenant, request.owner, request.running, pointers(request.records)});
  } else if (request.what == change::erase) {
    of.place = 0;
    to.erases.push_back(of.session);
  } else {
    add_change(of, to);
  }
}

void write_batch::add_change(line& of, plan& to) {
  const auto& request = front(of);
  change_step step;
  step.session = of.session;
  step.epoch = request.epoch;
  step.records = pointers(request.records);
  if (request.what == change::claim) {
    step.expected = of.head->sequence;
    step.next_epoch = request.epoch + 1;
    step.owner = request.owner;
  } else {
    step.expected = request.expected;
    step.next_epoch = request.epoch;
    step.running = request.running;
  }
  step.next = step.expected + request.records.size();
  // What was sent behind it without waiting for its answer.
  for (; request.what == change::append && of.at + of.group < of.requests.size(); ++of.group) {
    const auto& more = *requests_[of.requests[of.at + of.group]];
    if (more.what != change::append || more.epoch != step.epoch || more.expected != step.next)
      break;
    for (const auto& record : more.records)
      step.records.push_back(&record);
    step.next += more.records.size();
    step.running = more.running;
  }
  of.place = step.expected + 1;
  to.changes.push_back(std::move(step));
}

/// The step under way went in.
void write_batch::succeed(line& of, journal_head after) {
  const auto first = of.at;
  auto place = of.place - 1;
  for (std::size_t i = 0; i < of.group; ++i) {
    const auto& request = *requests_[of.requests[first + i]];
    auto head = after;
    place += request.records.size();
    head.sequence = place;
    if (request.what != change::claim)
      head.running = request.running;
    answer(of, std::move(head));
  }
  after.sequence = place;
  of.head = std::move(after);
  of.known = true;
  of.look = of.doubtful = of.tried = false;
  of.misses = of.group = 0;
}

void write_batch::missed(line& of) {
  of.known = false;
  of.look = true;
  // An earlier try of the same step may have gone in just now.
  of.doubtful = of.tried;
  if (++of.misses < most_misses)
    return;
  of.doubtful = false;
  refuse(of, {errc::deadline, "the session is written by others all the time", "", ""});
}

void write_batch::looked(line& of, const answers::found& what) {
  of.known = true;
  of.look = false;
  of.head = what.head;
  if (!of.doubtful)
    return;
  of.doubtful = false;
  const auto& request = front(of);
  if (request.what == change::erase) {
    if (what.head)
      return;
    journal_head gone;
    gone.session = of.session;
    answer(of, std::move(gone));
    of.tried = false;
    return;
  }
  if (!what.ours || !what.head)
    return;
  auto after = *what.head;
  // Others may have gone on from there.
  if (request.what == change::open) {
    after.epoch = 1;
    after.owner = request.owner;
    after.running = request.running;
  } else {
    after.epoch = request.what == change::claim ? request.epoch + 1 : request.epoch;
    if (request.what == change::claim)
      after.owner = request.owner;
  }
  const auto now = what.head;
  succeed(of, std::move(after));
  of.head = now;
}

void write_batch::committed(const plan& what, const answers& said) {
  for (std::size_t i = 0; i < what.looks.size(); ++i)
    looked(lines_.at(what.looks[i].session), said.looks[i]);
  for (std::size_t i = 0; i < what.changes.size(); ++i) {
    auto& one = lines_.at(what.changes[i].session);
    if (said.changes[i])
      succeed(one, *said.changes[i]);
    else
      missed(one);
  }
  for (std::size_t i = 0; i < what.opens.size(); ++i) {
    auto& one = lines_.at(what.opens[i].session);
    if (!said.opens[i]) {
      missed(one);
      continue;
    }
    const auto& step = what.opens[i];
    journal_head head;
    head.session = step.session;
    head.tenant = step.tenant;
    head.owner = step.owner;
    head.epoch = 1;
    head.running = step.running;
    succeed(one, std::move(head));
  }
  for (std::size_t i = 0; i < what.erases.size(); ++i) {
    auto& one = lines_.at(what.erases[i]);
    journal_head gone;
    gone.session = one.session;
    // Erased by our own earlier try, whose answer was lost, is erased too.
    if (said.erases[i] || one.tried)
      answer(one, std::move(gone));
    else
      answer(one, no_such_session());
    one.known = true;
    one.head.reset();
    one.look = one.doubtful = one.tried = false;
    one.group = 0;
  }
}

void write_batch::unknown(const plan& what) {
  const auto doubt = [this](const session_id& session) {
    auto& one = lines_.at(session);
    one.doubtful = one.tried = true;
  };
  for (const auto& step : what.changes)
    doubt(step.session);
  for (const auto& step : what.opens)
    doubt(step.session);
  for (const auto& session : what.erases)
    doubt(session);
}

void write_batch::rejected(const plan& what, const error& why) {
  if (what.size() > 1) {
    alone_ = true;
    return;
  }
  for (auto& [name, one] : lines_)
    if (one.at < one.requests.size()) {
      // The only step is of the first session that has one.
      one.known = false;
      one.look = one.doubtful = one.tried = false;
      for (auto left = std::max<std::size_t>(one.group, 1); left > 0; --left)
        answer(one, tl::unexpected<error>(why));
      one.group = 0;
      return;
    }
}

void write_batch::give_up(const error& why, const error& unsure) {
  for (auto& [name, one] : lines_) {
    // Behind a request that may have gone in stand those that were sent with it.
    for (auto left = one.doubtful || one.tried ? one.group : 0; left > 0 && one.at < one.requests.size();
         --left)
      answer(one, tl::unexpected<error>(unsure));
    while (one.at < one.requests.size())
      answer(one, tl::unexpected<error>(why));
  }
}

bool write_batch::doubtful() const {
  return std::any_of(lines_.begin(), lines_.end(), [](const auto& one) { return one.second.tried; });
}

std::vector<session_id> write_batch::doubtful_sessions() const {
  std::vector<session_id> out;
  for (const auto& [name, one] : lines_)
    if (one.tried && one.at < one.requests.size())
      out.push_back(name);
  return out;
}

} // namespace godwit::postgres
