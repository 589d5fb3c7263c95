#include "messages/error.hpp"

namespace godwit {

std::string_view to_string(errc code) {
  switch (code) {
  case errc::invalid_argument:
    return "invalid_argument";
  case errc::unsupported:
    return "unsupported";
  case errc::not_found:
    return "not_found";
  case errc::conflict:
    return "conflict";
  case errc::unprocessable:
    return "unprocessable";
  case errc::gone:
    return "gone";
  case errc::too_large:
    return "too_large";
  case errc::resource_exhausted:
    return "resource_exhausted";
  case errc::overloaded:
    return "overloaded";
  case errc::unavailable:
    return "unavailable";
  case errc::draining:
    return "draining";
  case errc::deadline:
    return "deadline";
  case errc::cancelled:
    return "cancelled";
  case errc::peer_lost:
    return "peer_lost";
  case errc::stale_sequence:
    return "stale_sequence";
  case errc::stale_epoch:
    return "stale_epoch";
  case errc::quarantined:
    return "quarantined";
  case errc::corrupt:
    return "corrupt";
  case errc::io:
    return "io";
  case errc::permission:
    return "permission";
  case errc::internal:
    return "internal";
  }
  return "unknown";
}

} // namespace godwit
