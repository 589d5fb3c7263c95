#include "messages/error_status.hpp"

namespace godwit {

int status_of(errc code) {
  switch (code) {
  case errc::invalid_argument:
  case errc::unsupported:
  case errc::corrupt:
    return 400;
  case errc::permission:
    return 403;
  case errc::not_found:
    return 404;
  case errc::conflict:
  case errc::cancelled:
    return 409;
  case errc::gone:
    return 410;
  case errc::too_large:
    return 413;
  case errc::unprocessable:
    return 422;
  case errc::internal:
  case errc::io:
  case errc::quarantined:
    return 500;
  // Another owner has the session, or it died: the next try finds the new one.
  case errc::stale_sequence:
  case errc::stale_epoch:
  case errc::peer_lost:
  case errc::unavailable:
  case errc::draining:
    return 503;
  case errc::deadline:
    return 504;
  case errc::overloaded:
  case errc::resource_exhausted:
    return 529;
  }
  return 500;
}

std::string_view error_type(int status) {
  switch (status) {
  case 401:
    return "authentication_error";
  case 403:
    return "permission_error";
  case 404:
    return "not_found_error";
  case 409:
    return "conflict_error";
  case 429:
    return "rate_limit_error";
  case 503:
    return "unavailable_error";
  case 529:
    return "overloaded_error";
  default:
    return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

bool is_private(errc code) {
  return code == errc::internal || code == errc::io;
}

} // namespace godwit
