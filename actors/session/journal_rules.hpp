#pragma once

#include "actors/session/journal.hpp"

#include <string_view>

namespace godwit {

// What every engine of the journal refuses, in the same words.

/// Longest name of a session, tenant or node in a journal, in bytes.
inline constexpr std::size_t max_journal_name_bytes = 255;

/// Most bytes of records in one request; a fork's prefix is written in one.
inline constexpr std::size_t max_journal_request_bytes = std::size_t{64} << 20;

/// @returns `invalid_argument` for an empty or overlong name; `what` names it
result<void> check_journal_name(std::string_view name, std::string_view what);

/// @returns the records' bytes, or `invalid_argument` for none, `too_large` over a limit
result<std::size_t> check_journal_records(const std::vector<journal_record>& records);

/// The fence: may this request append behind this head?
/// @returns `stale_epoch` or `stale_sequence`
result<void> check_fence(const journal_head& head, const append_request& request);

/// @returns `stale_epoch` unless the owner still is the one the claimant knew
result<void> check_claim(const journal_head& head, epoch_t expected);

// The failures themselves.

tl::unexpected<error> no_such_session();
tl::unexpected<error> session_exists();
tl::unexpected<error> session_quarantined();
tl::unexpected<error> journal_closed();
tl::unexpected<error> journal_overloaded();

} // namespace godwit
