#pragma once

#include "messages/error.hpp"

#include <cstdint>
#include <string_view>

namespace godwit::link {

/// Why something ended before its time. Travels in every header, so that a shutdown is never taken for a
/// client's cancel. Append only, never renumber.
enum class end_cause : std::uint8_t {
  none = 0, ///< it has not ended, or it ended by itself
  cancelled,
  deadline,
  peer_lost,
  draining,
  overloaded,
};

inline constexpr std::uint8_t end_causes = 6;

inline std::string_view to_string(end_cause cause) {
  constexpr std::string_view names[] = {
    "none", "cancelled", "deadline", "peer_lost", "draining", "overloaded"};
  return names[static_cast<std::uint8_t>(cause)];
}

/// What a request's failure says when it ended for this cause.
inline errc error_of(end_cause cause) {
  switch (cause) {
  case end_cause::none:
    return errc::internal;
  case end_cause::cancelled:
    return errc::cancelled;
  case end_cause::deadline:
    return errc::deadline;
  case end_cause::peer_lost:
    return errc::peer_lost;
  case end_cause::draining:
    return errc::draining;
  case end_cause::overloaded:
    return errc::overloaded;
  }
  return errc::internal;
}

/// The cause that a failure stands for; none for those that are no end, such as a bad argument.
inline end_cause cause_of(errc code) {
  switch (code) {
  case errc::cancelled:
    return end_cause::cancelled;
  case errc::deadline:
    return end_cause::deadline;
  case errc::peer_lost:
    return end_cause::peer_lost;
  case errc::draining:
    return end_cause::draining;
  case errc::overloaded:
    return end_cause::overloaded;
  default:
    return end_cause::none;
  }
}

} // namespace godwit::link
