#pragma once

#include "services/config/config.hpp"
#include "services/journal/rocks_journal.hpp"

#include <filesystem>
#include <memory>

namespace godwit {

/// What the configuration says about the embedded journal.
rocks_journal_options journal_options(
  const config& settings, std::filesystem::path folder, std::shared_ptr<journal_observer> observer);

} // namespace godwit
