#include "services/journal/postgres/postgres_journal.hpp"

#include "actors/session/journal_rules.hpp"
#include "services/journal/postgres/readers.hpp"
#include "services/journal/postgres/schema.hpp"
#include "services/journal/postgres/writer.hpp"
#include "services/journal/requests.hpp"

#include <future>
#include <thread>
#include <utility>

namespace godwit {

namespace {

/// Between two looks for a server at start.
constexpr std::chrono::milliseconds start_pause{200};

bool may_pass(errc code) {
  return code == errc::io || code == errc::deadline || code == errc::resource_exhausted;
}

} // namespace

result<std::unique_ptr<postgres_journal>> postgres_journal::create(postgres_journal_options options) {
  if (!postgres::good_schema_name(options.schema))
    return fail(errc::invalid_argument, "the schema of the journal must be small letters, digits and '_'");
  auto servers = postgres::parse_address(options.url);
  if (!servers)
    return fail(servers.error().code, "the address of the journal " + servers.error().message);
  std::unique_ptr<postgres_journal> log(new postgres_journal(std::move(options)));
  log->address_ = std::make_unique<postgres::address>(std::move(*servers));
  const auto& settings = log->options_;
  log->servers_ = std::make_unique<postgres::primary_finder>(postgres::primary_options{
    *log->address_, settings.schema, settings.allow_unsafe, settings.queue.deadline});

  const postgres::patience how{postgres::clock::now() + settings.queue.deadline};
  auto first = log->servers_->find(how);
  while (!first && may_pass(first.error().code) && !how.over()) {
    std::this_thread::sleep_for(start_pause);
    auto again = log->servers_->find(how);
    // The last words may be that there was no time left; those before say why.
    if (again || !how.over())
      first = std::move(again);
  }
  if (!first)
    return fail(first.error().code, "the journal cannot be opened: " + first.error().message);
  log->promise_ = first->promise;
  log->warn("the database at " + first->server + ": " + first->promise);

  log->readers_ = std::make_unique<postgres::readers>(
    *log->servers_, *log->address_, settings.read_deadline, settings.read_connections, log->closing_);
  postgres::writer_options writing;
  writing.deadline = settings.queue.deadline;
  writing.suspicion = settings.suspicion;
  log->writer_ = std::make_unique<postgres::writer>(
    writing, *log->servers_, *log->address_, log->counters_,
    [raw = log.get()](std::string_view text) { raw->warn(text); }, log->closing_);
  log->writer_->begin(std::move(*first));
  log->queue_ = std::make_unique<commit_queue>(
    settings.queue, [raw = log.get()](const auto& batch) { return raw->write(batch); }, log->counters_,
    settings.observer.get());
  return log;
}

postgres_journal::postgres_journal(postgres_journal_options options) : options_(std::move(options)) {}

postgres_journal::~postgres_journal() {
  // Waits no longer for servers; what is under way and what waits is still written if there is one.
  closing_ = true;
}

// Readers.

/// Whether what the database shows of a session may be told.
result<void> postgres_journal::readable(const session_id& session) {
  {
    const std::lock_guard lock(mutex_);
    if (quarantined_.contains(session))
      return session_quarantined();
  }
  if (!writer_->unsure(session))
    return {};
  nudge();
  return fail(errc::io, "the outcome of the last write is not known yet");
}

error postgres_journal::judge(const session_id& session, const error& failure) {
  if (failure.code != errc::corrupt)
    return failure;
  const std::lock_guard lock(mutex_);
  if (quarantined_.insert(session).second) {
    ++counters_.quarantined;
    warn("session " + session.value + " is quarantined: " + failure.message);
  }
  return session_quarantined().value();
}

result<journal_head> postgres_journal::head(const session_id& session) {
  if (auto good = readable(session); !good)
    return fail(good);
  auto head = readers_->head(session);
  if (!head)
    return tl::unexpected<error>(judge(session, head.error()));
  if (!*head)
    return no_such_session();
  return std::move(**head);
}

result<std::vector<placed_record>> postgres_journal::read(
  const session_id& session, sequence_number from, std::size_t limit) {
  if (auto good = readable(session); !good)
    return fail(good);
  auto records = readers_->read(session, from, limit);
  if (!records)
    return tl::unexpected<error>(judge(session, records.error()));
  return records;
}

result<std::vector<journal_head>> postgres_journal::list(const session_id& after, std::size_t limit) {
  auto heads = readers_->list(after, limit);
  if (!heads)
    return heads;
  const std::lock_guard lock(mutex_);
  for (auto& head : *heads)
    head.quarantined = head.quarantined || quarantined_.contains(head.session);
  return heads;
}

// Writers.

void postgres_journal::append(append_request request, appended done) {
  auto change = append_of(std::move(request));
  if (!change)
    return done(fail(change));
  queue_->push(std::move(*change), [done = std::move(done)](const result<journal_head>& head) {
    if (head)
      done(head->sequence);
    else
      done(fail(head));
  });
}

result<sequence_number> postgres_journal::open(const session_id& session, const tenant_id& tenant,
  const node_name& owner, std::vector<journal_record> records, bool running) {
  auto change = open_of(session, tenant, owner, std::move(records), running);
  if (!change)
    return fail(change);
  const auto head = wait_for(std::move(*change));
  if (!head)
    return fail(head);
  return head->sequence;
}

result<journal_head> postgres_journal::claim(
  const session_id& session, epoch_t expected, const node_name& owner, const journal_record& claimed) {
  auto change = claim_of(session, expected, owner, claimed);
  if (!change)
    return fail(change);
  return wait_for(std::move(*change));
}

result<void> postgres_journal::erase(const session_id& session) {
  if (auto head = wait_for(erase_of(session)); !head)
    return fail(head);
  return {};
}

result<journal_head> postgres_journal::wait_for(write_request request) {
  // The queue answers by its deadline, so this wait ends. Shared, since the queue's thread may still be
  // inside set_value() when this one has gone on.
  auto answer = std::make_shared<std::promise<result<journal_head>>>();
  auto future = answer->get_future();
  queue_->push(
    std::move(request), [answer](result<journal_head> head) { answer->set_value(std::move(head)); });
  return future.get();
}

std::string postgres_journal::trouble() {
  if (!counters_.failed)
    return {};
  nudge();
  return writer_->trouble();
}

void postgres_journal::nudge() {
  if (nudged_.exchange(true))
    return;
  write_request request;
  request.what = write_request::change::nothing;
  queue_->push(std::move(request), [this](const auto&) { nudged_ = false; });
}

void postgres_journal::warn(std::string_view text) const {
  if (options_.observer != nullptr)
    options_.observer->warning(text);
}

// The writing thread.

std::vector<result<journal_head>> postgres_journal::write(const std::vector<const write_request*>& batch) {
  auto verdicts = writer_->write(batch, [this](const session_id& session) {
    const std::lock_guard lock(mutex_);
    return quarantined_.contains(session);
  });
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

} // namespace godwit
