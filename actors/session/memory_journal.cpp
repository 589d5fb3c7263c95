#include "actors/session/memory_journal.hpp"

#include "actors/session/journal_rules.hpp"

#include <algorithm>
#include <utility>

namespace godwit {

namespace {

/// Does a call that may have been told to fail.
template <class Planned, class Work>
auto attempt(const Planned& planned, Work work) -> decltype(work()) {
  if (!planned)
    return work();
  if (planned->what == memory_journal::outcome::stored)
    static_cast<void>(work());
  return tl::unexpected<error>(planned->failure);
}

void put(memory_disk::session& session, const std::vector<journal_record>& records) {
  for (const auto& record : records)
    session.records.push_back({++session.head.sequence, session.head.epoch, record});
}

} // namespace

memory_journal::memory_journal(std::shared_ptr<memory_disk> disk) : disk_(std::move(disk)) {}

memory_journal::~memory_journal() {
  for (auto& append : waiting_)
    append.done(journal_closed());
}

result<sequence_number> memory_journal::open(const session_id& session, const tenant_id& tenant,
  const node_name& owner, std::vector<journal_record> records, bool running) {
  const std::lock_guard lock(mutex_);
  return attempt(next_failure(call::open), [&]() -> result<sequence_number> {
    for (const auto& [name, what] : {std::pair(std::string_view(session.value), "session"),
           std::pair(std::string_view(tenant.value), "tenant"),
           std::pair(std::string_view(owner.value), "node")})
      if (auto good = check_journal_name(name, what); !good)
        return fail(good);
    if (auto good = check_journal_records(records); !good)
      return fail(good);
    const auto [place, fresh] = disk_->sessions.try_emplace(session);
    if (!fresh)
      return session_exists();
    auto& entry = place->second;
    entry.head.session = session;
    entry.head.tenant = tenant;
    entry.head.owner = owner;
    entry.head.epoch = 1;
    entry.head.running = running;
    put(entry, records);
    return entry.head.sequence;
  });
}

void memory_journal::append(append_request request, appended done) {
  result<sequence_number> answer;
  {
    const std::lock_guard lock(mutex_);
    if (held_ || !waiting_.empty()) {
      waiting_.push_back({std::move(request), std::move(done)});
      return;
    }
    answer = attempt(next_failure(call::append), [&] { return commit(request); });
  }
  done(std::move(answer));
}

result<sequence_number> memory_journal::commit(const append_request& request) {
  if (auto good = check_journal_records(request.records); !good)
    return fail(good);
  auto entry = find(request.session);
  if (!entry)
    return fail(entry);
  if (auto good = check_fence((*entry)->head, request); !good)
    return fail(good);
  put(**entry, request.records);
  (*entry)->head.running = request.running;
  return (*entry)->head.sequence;
}

result<journal_head> memory_journal::claim(
  const session_id& session, epoch_t expected, const node_name& owner, const journal_record& claimed) {
  const std::lock_guard lock(mutex_);
  return attempt(next_failure(call::claim), [&]() -> result<journal_head> {
    if (auto good = check_journal_name(owner.value, "node"); !good)
      return fail(good);
    if (auto good = check_journal_records({claimed}); !good)
      return fail(good);
    auto entry = find(session);
    if (!entry)
      return fail(entry);
    auto& head = (*entry)->head;
    if (auto good = check_claim(head, expected); !good)
      return fail(good);
    ++head.epoch;
    head.owner = owner;
    put(**entry, {claimed});
    return head;
  });
}

result<journal_head> memory_journal::head(const session_id& session) {
  const std::lock_guard lock(mutex_);
  return attempt(next_failure(call::head), [&]() -> result<journal_head> {
    auto entry = find(session);
    if (!entry)
      return fail(entry);
    return (*entry)->head;
  });
}

result<std::vector<placed_record>> memory_journal::read(
  const session_id& session, sequence_number from, std::size_t limit) {
  const std::lock_guard lock(mutex_);
  return attempt(next_failure(call::read), [&]() -> result<std::vector<placed_record>> {
    auto entry = find(session);
    if (!entry)
      return fail(entry);
    std::vector<placed_record> found;
    const auto& records = (*entry)->records;
    for (std::size_t i = std::max(from, (*entry)->oldest) - 1; i < records.size() && found.size() < limit;
         ++i) {
      if (records[i].sequence == (*entry)->damaged) {
        quarantined_.insert(session);
        return session_quarantined();
      }
      found.push_back(records[i]);
    }
    return found;
  });
}

result<void> memory_journal::erase(const session_id& session) {
  const std::lock_guard lock(mutex_);
  return attempt(next_failure(call::erase), [&]() -> result<void> {
    quarantined_.erase(session);
    if (disk_->sessions.erase(session) == 0)
      return no_such_session();
    return {};
  });
}

result<std::vector<journal_head>> memory_journal::list(const session_id& after, std::size_t limit) {
  const std::lock_guard lock(mutex_);
  return attempt(next_failure(call::list), [&]() -> result<std::vector<journal_head>> {
    std::vector<journal_head> heads;
    for (auto place = disk_->sessions.upper_bound(after);
         place != disk_->sessions.end() && heads.size() < limit; ++place) {
      heads.push_back(place->second.head);
      heads.back().quarantined = quarantined_.contains(place->first);
    }
    return heads;
  });
}

void memory_journal::hold() {
  const std::lock_guard lock(mutex_);
  held_ = true;
}

std::size_t memory_journal::release(std::size_t count) {
  std::size_t released = 0;
  for (; released < count; ++released) {
    waiting_append next;
    result<sequence_number> answer;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty())
        break;
      next = std::move(waiting_.front());
      waiting_.pop_front();
      answer = attempt(next_failure(call::append), [&] { return commit(next.request); });
    }
    next.done(std::move(answer));
  }
  return released;
}

void memory_journal::resume() {
  {
    const std::lock_guard lock(mutex_);
    held_ = false;
  }
  release();
}

std::size_t memory_journal::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

void memory_journal::fail_next(call kind, error failure, std::size_t times, outcome what) {
  const std::lock_guard lock(mutex_);
  if (times > 0)
    failures_[kind].push_back({std::move(failure), times, what});
}

void memory_journal::damage(const session_id& session, sequence_number sequence) {
  const std::lock_guard lock(mutex_);
  if (const auto place = disk_->sessions.find(session); place != disk_->sessions.end())
    place->second.damaged = sequence;
}

void memory_journal::forget(const session_id& session, sequence_number before) {
  const std::lock_guard lock(mutex_);
  if (const auto place = disk_->sessions.find(session); place != disk_->sessions.end())
    place->second.oldest = before;
}

std::optional<memory_journal::planned_failure> memory_journal::next_failure(call kind) {
  auto& planned = failures_[kind];
  if (planned.empty())
    return std::nullopt;
  const auto next = planned.front();
  if (--planned.front().times == 0)
    planned.pop_front();
  return next;
}

result<memory_disk::session*> memory_journal::find(const session_id& session) {
  const auto place = disk_->sessions.find(session);
  if (place == disk_->sessions.end())
    return no_such_session();
  if (quarantined_.contains(session))
    return session_quarantined();
  return &place->second;
}

} // namespace godwit
