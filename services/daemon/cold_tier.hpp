#pragma once

#include "actors/cache/block_identity.hpp"
#include "actors/cache/cold_store.hpp"
#include "messages/result.hpp"
#include "services/config/config.hpp"
#include "services/log/log.hpp"

#include <filesystem>
#include <memory>
#include <optional>

namespace godwit {

/// The KV cache's tier on disk, and the secret of its identities.
struct cold_tier {
  std::shared_ptr<cold_store> store; ///< null: there is none
  std::optional<identity_key> key;
};

/// Opens the tier that the settings ask for. A disk that does not work is no reason not to serve: then there
/// is a warning, and a store that takes nothing and counts as degraded, until the next start. A folder that
/// is another one's, or in use, is a mistake of the operator's.
/// @param folder for it, if the settings name none
/// @param scope of the model that is served
/// @returns `conflict`, `invalid_argument` or `unsupported` naming the setting: the node must not start
result<cold_tier> open_cold_tier(const config& settings, const std::filesystem::path& folder,
  const cache_scope& scope, const std::shared_ptr<logger>& out);

} // namespace godwit
