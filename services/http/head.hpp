#pragma once

#include "services/http/exchange.hpp"

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

namespace godwit::http {

/// How the end of an answer's body is told (RFC 9112, 6).
enum class framing : std::uint8_t {
  none,    ///< no body, and no word about one: 204, 304
  length,  ///< content-length
  chunked, ///< chunks
  close,   ///< the end of the connection; for HTTP/1.0 clients
};

struct head_options {
  framing body = framing::length;
  std::uint64_t length = 0; ///< with framing::length
  bool keep_alive = true;
  bool http10 = false; ///< the client spoke HTTP/1.0: staying open has to be said
  std::time_t now = 0; ///< for the date field
};

/// Status line and fields of an answer, with the empty line. Fields about framing and the connection are made
/// here; the caller's own of those names are left out. A control character in a value becomes a space, so
/// that no value starts a field of its own.
std::string format_head(int status, const headers& fields, const head_options& options);

/// "HTTP-date" of RFC 9110, 5.6.7, for example "Sun, 06 Nov 1994 08:49:37 GMT".
std::string format_date(std::time_t when);

/// One chunk of a chunked body. @pre bytes is not empty: an empty chunk would end the body
std::string format_chunk(std::string_view bytes);

/// The end of a chunked body.
inline constexpr std::string_view last_chunk = "0\r\n\r\n";

/// The reason phrase of a status; "Unknown" where there is none.
std::string_view reason_phrase(int status);

/// True for statuses whose answers never have a body.
constexpr bool bodyless(int status) {
  return status < 200 || status == 204 || status == 304;
}

} // namespace godwit::http
