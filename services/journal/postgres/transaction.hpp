#pragma once

#include "services/journal/postgres/batch.hpp"
#include "services/postgres/connection.hpp"

#include <span>
#include <string_view>

namespace godwit::postgres {

/// The statements of a transaction.
/// @param mark tells the records of this batch from all others
std::vector<statement> statements_of(const plan& what, std::string_view mark);

/// What they returned. @returns `corrupt` if that makes no sense
result<answers> answers_of(const plan& what, std::string_view mark, const std::vector<rows>& returned);

/// Waits until nobody holds these sessions and all that was committed is on the standbys as well.
std::vector<statement> settling(std::span<const session_id> sessions);

/// A head from five fields of a row, from `column` on: tenant, sequence, epoch, owner, running.
result<journal_head> head_at(
  const session_id& session, const rows& from, std::size_t row, std::size_t column);

} // namespace godwit::postgres
