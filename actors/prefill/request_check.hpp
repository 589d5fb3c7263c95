#pragma once

#include "messages/result.hpp"
#include "messages/schemas/generation.capnp.h"

#include <cstdint>

namespace godwit {

/// What a worker can take.
struct request_limits {
  std::uint32_t vocabulary = 0;
  std::uint32_t context = 0;     ///< tokens of prompt and answer, as the model allows
  std::uint32_t pool_tokens = 0; ///< tokens whose pages the whole pool holds

  /// A sequence of so many tokens is complete.
  std::uint32_t longest() const { return context < pool_tokens ? context : pool_tokens; }
};

/// Refuses what could never run, before any work.
/// @returns `invalid_argument` naming the field; for a prompt over the context or over what the page pool
/// could hold even alone with both numbers, since to try again would be in vain
result<void> check_request(schema::GenerateRequest::Reader ask, const request_limits& limits);

} // namespace godwit
