#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace godwit {

// What can be done with a cold store while no node uses it. All return `not_found` for a folder that is no
// cold store, `conflict` while a node has it, `corrupt` if it is damaged beyond single records (clear_cold()
// of all of it mends that), and what opening returns. Messages are for the operator.

struct cold_share {
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0; ///< of records
};

struct cold_inventory {
  cold_share all;
  std::map<std::string, cold_share> tenants;
  std::map<std::string, cold_share> models; ///< by the digest of their fingerprint, 32 hex digits
  std::uint64_t damaged = 0;                ///< notes that do not check; the next start deletes them
  std::uint64_t disk_bytes = 0;             ///< of pages and tables
  std::uint64_t garbage_bytes =
    0; ///< of disk_bytes, of blocks that were deleted, as far as merges have met them
};

/// What is in it. Reads no pages.
result<cold_inventory> list_cold(const std::filesystem::path& folder);

struct cold_verdict {
  cold_share good;
  std::uint64_t damaged = 0; ///< deleted
};

/// Reads every block and deletes those that do not check.
result<cold_verdict> verify_cold(const std::filesystem::path& folder);

struct cold_cleared : cold_share {
  bool counted = true; ///< false: all are deleted, and the store was too damaged to count them
};

/// Deletes all blocks, or those of one tenant, and gives their space back. The secret of identities stays.
result<cold_cleared> clear_cold(
  const std::filesystem::path& folder, const std::optional<std::string>& tenant);

} // namespace godwit
