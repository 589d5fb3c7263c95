#include "services/journal/rocks_journal.hpp"

#include "actors/session/journal_rules.hpp"
#include "services/journal/rocks_batch.hpp"
#include "services/journal/rocks_store.hpp"

#include <algorithm>
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
  : queued_journal(options.observer), options_(std::move(options)), store_(std::move(store)),
    queue_(
      options_.queue, [this](const auto& batch) { return write(batch); }, counters_,
      options_.observer.get()) {}

rocks_journal::~rocks_journal() = default;

// Readers.

result<std::shared_ptr<rocks_store>> rocks_journal::store_for(const session_id& session) {
  if (is_quarantined(session))
    return session_quarantined();
  {
    const std::lock_guard lock(mutex_);
    if (store_ != nullptr && !unsure_.contains(session))
      return store_;
  }
  nudge();
  return fail(errc::io, "the disk refused the last write; the end of the journal is not known yet");
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
  mark_quarantined(*heads);
  return heads;
}

std::string rocks_journal::trouble() {
  if (!counters_.failed)
    return {};
  nudge();
  return "the disk refuses to be written";
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
    const bool sound = !is_quarantined(request->session);
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
  settle(batch, verdicts);
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

} // namespace godwit
