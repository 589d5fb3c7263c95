#include "services/daemon/journal_options.hpp"

#include "services/daemon/address_file.hpp"

#include <utility>

namespace godwit {

rocks_journal_options journal_options(
  const config& settings, std::filesystem::path folder, std::shared_ptr<journal_observer> observer) {
  rocks_journal_options out;
  out.folder = std::move(folder);
  out.queue.bytes = settings.journal_queue_bytes;
  out.queue.deadline = settings.journal_deadline;
  out.when_damaged = settings.cut_damaged_journal ? damaged_log::cut : damaged_log::refuse;
  out.observer = std::move(observer);
  return out;
}

result<postgres_journal_options> postgres_options(
  const config& settings, std::shared_ptr<journal_observer> observer) {
  postgres_journal_options out;
  out.url = settings.journal_url;
  if (!settings.journal_url_file.empty()) {
    auto address = address_in(settings.journal_url_file, "journal_url_file");
    if (!address)
      return fail(address);
    out.url = std::move(*address);
  }
  out.allow_unsafe = settings.journal_allow_unsafe;
  out.queue.bytes = settings.journal_queue_bytes;
  out.queue.deadline = settings.journal_deadline;
  out.observer = std::move(observer);
  return out;
}

result<std::shared_ptr<stored_journal>> open_journal(
  const config& settings, std::filesystem::path folder, std::shared_ptr<journal_observer> observer) {
  if (settings.journal == journal_kind::rocksdb) {
    auto made = rocks_journal::create(journal_options(settings, std::move(folder), std::move(observer)));
    if (!made)
      return fail(made);
    return std::shared_ptr<stored_journal>(std::move(*made));
  }
  auto options = postgres_options(settings, std::move(observer));
  if (!options)
    return fail(options);
  auto made = postgres_journal::create(std::move(*options));
  if (!made)
    return fail(made);
  return std::shared_ptr<stored_journal>(std::move(*made));
}

} // namespace godwit
