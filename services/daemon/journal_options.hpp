#pragma once

#include "services/config/config.hpp"
#include "services/journal/postgres/postgres_journal.hpp"
#include "services/journal/rocks_journal.hpp"

#include <filesystem>
#include <memory>

namespace godwit {

/// What the configuration says about the embedded journal.
rocks_journal_options journal_options(
  const config& settings, std::filesystem::path folder, std::shared_ptr<journal_observer> observer);

/// What it says about the journal in a database.
/// @returns `io` or `invalid_argument` for a file with the address that cannot be used
result<postgres_journal_options> postgres_options(
  const config& settings, std::shared_ptr<journal_observer> observer);

/// Opens the journal that the configuration names.
/// @param folder of the embedded one
result<std::shared_ptr<stored_journal>> open_journal(
  const config& settings, std::filesystem::path folder, std::shared_ptr<journal_observer> observer);

} // namespace godwit
