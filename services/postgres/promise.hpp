#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <string>

namespace godwit::postgres {

/// What a server says about how it keeps things.
struct server_settings {
  std::string fsync;
  std::string synchronous_commit;
  std::string synchronous_standby_names;
  std::int64_t standbys = 0;    ///< that are connected
  std::int64_t synchronous = 0; ///< of them, those that commits wait for
  std::int64_t hidden = 0;      ///< of them, those whose state this role may not see
};

/// In one sentence, what a record that was acknowledged survives.
/// @param allow_unsafe take settings, too, under which it may not survive a crash
/// @returns `unsupported` for such settings, naming them
result<std::string> promise_of(const server_settings& server, bool allow_unsafe);

} // namespace godwit::postgres
