#include "services/daemon/journal_options.hpp"

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

} // namespace godwit
