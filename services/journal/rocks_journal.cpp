#include "services/journal/rocks_journal.hpp"

#include "actors/session/journal_rules.hpp"
#include "services/journal/requests.hpp"
#include "services/journal/rocks_batch.hpp"
#include "services/journal/rocks_store.hpp"

#include <algorithm>
#include <future>
#include <utility>

namespace godwit {

result<std::unique_ptr<rocks_journal>> rocks_journal::create(rocks_journal_options options) {
  std::error_code code;
  std::filesystem::create_directory(options.folder, code);
  if (code)
    return fail(errc::io, "the journal's directory cannot be made: " + code.message());
  auto store = rocks_store::open(options, rocks_store::mode::normal);
  if (!store)
    return fail(store);
  return std::unique_ptr<rocks_journal>(new rocks_journal(std::move(options), std::move(*store)));
}

rocks_journal::rocks_journal(rocks_journal_options options, std::shared_ptr<rocks_store> store)
  : options_(std::move(options)), store_(std::move(store)),
    queue_(
      options_.queue, [this](const auto& batch) { return write(batch); }, counters_,
      options_.observer.get()) {}

rocks_journal::~rocks_journal() = default;

// Readers.

result<std::shared_ptr<rocks_store>> rocks_journal::store_for(const session_id& session) {
  {
    const std::lock_guard lock(mutex_);
    if (quarantined_.contains(session))
      return session_quarantined();
    if (store_ != nullptr && !unsure_.contains(session))
      return store_;
  }
  nudge();
  return fail(errc::io, "the disk refused the last write; the end of the journal is not known yet");
}

error rocks_journal::judge(const session_id& session, const error& failure) {
  if (failure.code != errc::corrupt)
    return failure;
  const std::lock_guard lock(mutex_);
  if (quarantined_.insert(session).second) {
    ++counters_.quarantined;
    warn("session " + session.value + " is quarantined: " + failure.message);
  }
  return session_quarantined().value();
}

result<journal_head> rocks_journal::head(const session_id& session) {
  const auto store = store_for(session);
  if (!store)
    return fail(store);
  auto head = (*store)->head(session);
  if (!head)
    return tl::unexpected<error>(judge(session, head.error()));
  if (!*head)
    return no_such_session();
  return std::move(**head);
}

result<std::vector<placed_record>> rocks_journal::read(
  const session_id& session, sequence_number from, std::size_t limit) {
  const auto store = store_for(session);
  if (!store)
    return fail(store);
  auto records = (*store)->read(session, from, limit);
  if (!records)
    return tl::unexpected<error>(judge(session, records.error()));
  return records;
}

result<std::vector<journal_head>> rocks_journal::list(const session_id& after, std::size_t limit) {
  const auto store = store_for({});
  if (!store)
    return fail(store);
  auto heads = (*store)->list(after, limit);
  if (!heads)
    return heads;
  const std::lock_guard lock(mutex_);
  for (auto& head : *heads)
    head.quarantined = head.quarantined || quarantined_.contains(head.session);
  return heads;
}

// Writers.

void rocks_journal::append(append_request request, appended done) {
  auto change = append_of(std::move(request));
  if (!change)
    return done(fail(change));
  queue_.push(std::move(*change), [done = std::move(done)](const result<journal_head>& head) {
    if (head)
      done(head->sequence);
    else
      done(fail(head));
  });
}

result<sequence_number> rocks_journal::open(const session_id& session, const tenant_id& tenant,
  const node_name& owner, std::vector<journal_record> records, bool running) {
  auto change = open_of(session, tenant, owner, std::move(records), running);
  if (!change)
    return fail(change);
  const auto head = wait_for(std::move(*change));
  if (!head)
    return fail(head);
  return head->sequence;
}

result<journal_head> rocks_journal::claim(
  const session_id& session, epoch_t expected, const node_name& owner, const journal_record& claimed) {
  auto change = claim_of(session, expected, owner, claimed);
  if (!change)
    return fail(change);
  return wait_for(std::move(*change));
}

result<void> rocks_journal::erase(const session_id& session) {
  if (auto head = wait_for(erase_of(session)); !head)
    return fail(head);
  return {};
}

result<journal_head> rocks_journal::wait_for(write_request request) {
  // The queue answers by its deadline, so this wait ends. Shared, since the queue's thread may still be
  // inside set_value() when this one has gone on.
  auto answer = std::make_shared<std::promise<result<journal_head>>>();
  auto future = answer->get_future();
  queue_.push(
    std::move(request), [answer](result<journal_head> head) { answer->set_value(std::move(head)); });
  return future.get();
}

std::string rocks_journal::trouble() {
  if (!counters_.failed)
    return {};
  nudge();
  return "the disk refuses to be written";
}

void rocks_journal::nudge() {
  if (nudged_.exchange(true))
    return;
  write_request request;
  request.what = write_request::change::nothing;
  queue_.push(std::move(request), [this](const auto&) { nudged_ = false; });
}

// The writing thread.

std::vector<result<journal_head>> rocks_journal::write(const std::vector<const write_request*>& batch) {
  if (!recover())
    return std::vector<result<journal_head>>(batch.size(), tl::unexpected<error>(failure_));

  std::vector<result<journal_head>> verdicts;
  // The verdict was drawn from a change of this batch, so it holds only if the batch does.
  std::vector<bool> follows;
  rocks_batch changes(*store_);
  for (const auto* request : batch) {
    follows.push_back(changes.changed(request->session));
    const auto sound = [&] {
      const std::lock_guard lock(mutex_);
      return !quarantined_.contains(request->session);
    }();
    const bool erases = request->what == write_request::change::erase;
    auto verdict = sound || erases ? changes.add(*request) : result<journal_head>(session_quarantined());
    if (!verdict && verdict.error().code == errc::corrupt)
      verdict = erases ? changes.erase_damaged(request->session)
                       : tl::unexpected<error>(judge(request->session, verdict.error()));
    verdicts.push_back(std::move(verdict));
  }

  if (!changes.empty()) {
    if (const auto status = changes.write(*store_); !status.ok()) {
      warn("the journal cannot write: " + status.ToString());
      failed(batch, to_error(status), status.IsCorruption());
      for (std::size_t i = 0; i < batch.size(); ++i)
        if (verdicts[i] || follows[i])
          verdicts[i] = tl::unexpected<error>(failure_);
      return verdicts;
    }
    ++counters_.syncs;
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (batch[i]->what == write_request::change::nothing)
      continue;
    if (!verdicts[i]) {
      const auto code = verdicts[i].error().code;
      counters_.fenced += code == errc::stale_epoch || code == errc::stale_sequence ? 1U : 0U;
      continue;
    }
    ++counters_.appends;
    counters_.records += batch[i]->records.size();
    counters_.bytes += batch[i]->bytes;
    if (batch[i]->what == write_request::change::erase) {
      const std::lock_guard lock(mutex_);
      quarantined_.erase(batch[i]->session);
    }
  }
  return verdicts;
}

void rocks_journal::failed(
  const std::vector<const write_request*>& batch, const error& failure, bool damaged_table) {
  ++counters_.failures;
  counters_.failed = true;
  failure_ = failure;
  if (damaged_table) {
    // Found while tables were merged. The sessions in it are quarantined when they are read; the others go
    // on, once nothing tries to merge it any more.
    failure_ = {errc::io, "the disk refused", "", ""};
    counters_.compaction_off = true;
  }
  pause_ = options_.first_retry;
  next_attempt_ = std::chrono::steady_clock::now() + pause_;
  const std::lock_guard lock(mutex_);
  for (const auto* request : batch)
    unsure_.insert(request->session);
}

bool rocks_journal::recover() {
  if (!counters_.failed)
    return true;
  if (std::chrono::steady_clock::now() < next_attempt_)
    return false;
  if (!reopen()) {
    pause_ = std::min(2 * pause_, options_.last_retry);
    next_attempt_ = std::chrono::steady_clock::now() + pause_;
    return false;
  }
  counters_.failed = false;
  ++counters_.recoveries;
  warn("the journal can write again");
  const std::lock_guard lock(mutex_);
  unsure_.clear();
  return true;
}

bool rocks_journal::reopen() {
  // While the disk refuses, the old store goes on serving reads.
  if (!rocks_store::disk_takes_writes(options_))
    return false;
  std::shared_ptr<rocks_store> old;
  {
    const std::lock_guard lock(mutex_);
    old.swap(store_);
  }
  // Readers that hold it still are short; without them the directory is free.
  const auto patience = std::chrono::steady_clock::now() + options_.queue.deadline;
  while (old.use_count() > 1 && std::chrono::steady_clock::now() < patience)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (old.use_count() > 1) {
    const std::lock_guard lock(mutex_);
    store_ = std::move(old);
    return false;
  }
  old.reset();
  auto mode = counters_.compaction_off ? rocks_store::mode::without_compaction : rocks_store::mode::normal;
  auto fresh = rocks_store::open(options_, mode);
  const bool back = fresh.has_value();
  if (!back) {
    warn(fresh.error().message);
    fresh = rocks_store::open(options_, rocks_store::mode::read_only);
    if (!fresh)
      return false;
  }
  const std::lock_guard lock(mutex_);
  store_ = std::move(*fresh);
  return back;
}

void rocks_journal::warn(std::string_view text) const {
  if (options_.observer != nullptr)
    options_.observer->warning(text);
}

} // namespace godwit
