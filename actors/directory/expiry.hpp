#pragma once

#include "actors/session/journal.hpp"
#include "messages/result.hpp"

#include <chrono>
#include <cstdint>

namespace godwit {

/// What is to become of a session without an actor whose time may be over.
enum class expiry {
  keep,
  close, ///< it has expired and its journal does not say so yet
  erase, ///< it has expired long ago
};

/// Reads the journal's first record, and its last if need be.
/// @param now milliseconds since 1970
/// @param keep how long an expired session's journal is kept
/// @returns the journal's errors
result<expiry> check_expiry(
  journal& records, const journal_head& head, std::int64_t now, std::chrono::milliseconds keep);

} // namespace godwit
