#pragma once

#include "actors/session/journal.hpp"
#include "actors/session/session_machine.hpp"
#include "actors/session/session_records.hpp"
#include "actors/tokenizer/token_text.hpp"
#include "messages/ids.hpp"
#include "messages/letter.hpp"
#include "messages/result.hpp"
#include "messages/schemas/session.capnp.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace godwit {

struct fork_order {
  session_id child;
  session_owner owner;
  std::int64_t at = 0; ///< milliseconds since 1970
  std::shared_ptr<const token_text> text;
  std::size_t most_records = 0;
  std::size_t page = 256;
};

/// Where a session is cut for a fork: the last record to be copied.
/// @param at an event id, a turn's number (the end of it, or now if it runs), or empty for now
/// @returns `invalid_argument` naming `at`
result<sequence_number> fork_point(const session_machine& parent, std::string_view at);

/// Opens a journal that holds the parent's records up to a point, and then says so. A turn that was running
/// there ends there; messages whose turns had not begun are left out. The copy needs nothing of the parent
/// any more.
/// @returns the new session; the errors of fork_point() and the journal, `too_large`, `conflict` for a closed
/// parent
result<letter<schema::SessionInfo>> fork_session(
  journal& records, const session_machine& parent, std::string_view at, const fork_order& order);

} // namespace godwit
