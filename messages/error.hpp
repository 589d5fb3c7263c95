#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace godwit {

/// Why something expected failed. The values travel between nodes: append only, never renumber.
enum class errc : std::uint8_t {
  invalid_argument = 1, ///< malformed or out of range; `param` names the field
  unsupported,          ///< understood, but not built; `param` names the field
  not_found,
  conflict,           ///< the state does not allow it now; `reason` says which rule
  unprocessable,      ///< an idempotency key with another body
  gone,               ///< older than what is kept
  too_large,          ///< a stated size limit is exceeded
  resource_exhausted, ///< no pages, no descriptors, no disk
  overloaded,         ///< all workers busy: try again later
  unavailable,        ///< no worker, or the part is starting
  draining,           ///< this node takes no new work
  deadline,           ///< the time for it is over
  cancelled,          ///< a client asked for the end
  peer_lost,          ///< the other side died
  stale_sequence,     ///< another record stands at that place of the journal
  stale_epoch,        ///< another node owns the session
  quarantined,        ///< a damaged record in the middle of a journal
  corrupt,            ///< bytes from outside that do not check
  io,                 ///< the disk or the system said no
  permission,
  internal, ///< a mistake of ours
};

/// The enumerator's name, as logs and metrics show it.
std::string_view to_string(errc code);

/// An expected failure. `message` says what is wrong and what to do, without prompt text, paths or addresses
/// where it may reach a client.
struct error {
  errc code = errc::internal;
  std::string message;
  std::string param;  ///< the request's field that is at fault, if one is
  std::string reason; ///< the API's word for it, such as "turn_running"; to_string(code) if empty

  bool operator==(const error&) const = default;
};

} // namespace godwit
