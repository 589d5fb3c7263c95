#pragma once

#include "actors/session/session_event.hpp"
#include "messages/ids.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace godwit {

/// How one session's event places are written: 24 digits, of which the first twelve are the session's own and
/// the last nine and three the record's sequence and the index of the event. Opaque to clients. Greater
/// places are greater ids, as texts and as numbers.
class event_ids {
 public:
  explicit event_ids(const session_id& session);

  std::string text(event_place place) const;

  /// @param last the session's last record; an id behind it is of the future
  /// @returns `invalid_argument` naming `after` for an id that is malformed, another session's, or not
  /// reached yet
  result<event_place> parse(std::string_view id, sequence_number last) const;

  /// True for the form of an id, of whichever session.
  static bool has_form(std::string_view id);

  static constexpr std::size_t size = 24;
  /// The last record that has ids.
  static constexpr sequence_number max_sequence = 999'999'999;

 private:
  std::string tag_;
};

} // namespace godwit
