#include "services/journal/postgres/postgres_journal.hpp"

#include "actors/session/journal_rules.hpp"
#include "services/journal/postgres/readers.hpp"
#include "services/journal/postgres/schema.hpp"
#include "services/journal/postgres/writer.hpp"

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
  log->servers_ =
    std::make_unique<postgres::primary_finder>(postgres::primary_options{.servers = *log->address_,
      .schema = settings.schema,
      .tables = postgres::journal_tables(),
      .prepared = postgres::journal_statements(settings.schema),
      .allow_unsafe = settings.allow_unsafe,
      .statement_time = settings.queue.deadline});

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

postgres_journal::postgres_journal(postgres_journal_options options)
  : queued_journal(options.observer), options_(std::move(options)) {}

postgres_journal::~postgres_journal() {
  // Waits no longer for servers; what is under way and what waits is still written if there is one.
  closing_ = true;
}

// Readers.

/// Whether what the database shows of a session may be told.
result<void> postgres_journal::readable(const session_id& session) {
  if (is_quarantined(session))
    return session_quarantined();
  if (!writer_->unsure(session))
    return {};
  nudge();
  return fail(errc::io, "the outcome of the last write is not known yet");
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
  mark_quarantined(*heads);
  return heads;
}

std::string postgres_journal::trouble() {
  if (!counters_.failed)
    return {};
  nudge();
  return writer_->trouble();
}

// The writing thread.

std::vector<result<journal_head>> postgres_journal::write(const std::vector<const write_request*>& batch) {
  auto verdicts =
    writer_->write(batch, [this](const session_id& session) { return is_quarantined(session); });
  settle(batch, verdicts);
  return verdicts;
}

} // namespace godwit
