#pragma once

#include "tools/godwit/output.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace godwit::cli {

// Commands on a cold store that no node uses. `folder` is the store's own, or a data directory with one in
// its folder "cold".

/// What is in it, by tenant and by model.
int cache_stats(const settings& how, const std::filesystem::path& folder);
/// Reads every block and deletes those that do not check. Exits with exit_failed if there were any.
int cache_verify(const settings& how, const std::filesystem::path& folder);
/// Deletes all blocks, or those of one tenant.
int cache_clear(
  const settings& how, const std::filesystem::path& folder, const std::optional<std::string>& tenant);

} // namespace godwit::cli
