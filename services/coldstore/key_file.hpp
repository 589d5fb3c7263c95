#pragma once

#include "actors/cache/block_identity.hpp"
#include "messages/result.hpp"

#include <filesystem>

namespace godwit {

/// The secret of the identities of the blocks in a cold store, so that a prefix has the same names after a
/// restart. It lies in the store's folder, readable by its owner only, and is made, with the folder, if it is
/// not there. One that does not check is replaced: the blocks that were stored under it are never found
/// again, and go in time. Also says that the folder is a cold store's.
/// @returns `permission`, `resource_exhausted`, `io`; `invalid_argument` if the folder holds something else
result<identity_key> cold_identity_key(const std::filesystem::path& folder);

/// Whether a folder is a cold store's.
bool is_cold_store(const std::filesystem::path& folder);

} // namespace godwit
