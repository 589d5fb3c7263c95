#pragma once

#include "messages/ids.hpp"

#include <compare>
#include <string>

namespace godwit {

/// Where an event stands: its record, and which of the record's events it is, from 0.
struct event_place {
  sequence_number sequence = 0;
  unsigned index = 0;

  /// More events than a record ever makes; as a place it stands for the end of a record.
  static constexpr unsigned end = 999;

  auto operator<=>(const event_place&) const = default;
};

/// What a client sees of a session, as a function of its journal.
struct session_event {
  event_place place;
  std::string type;      ///< as in the API: "token", "turn.completed", ...
  std::string data;      ///< JSON
  turn_number turn = 0;  ///< 0: of the session as a whole
  bool terminal = false; ///< the last event of its turn

  bool operator==(const session_event&) const = default;
};

} // namespace godwit
