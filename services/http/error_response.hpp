#pragma once

#include "services/http/exchange.hpp"

#include <string_view>

namespace godwit::http {

/// An answer with the API's error body: {"error":{"type","code","message","param"?}}. Text that is not UTF-8
/// is repaired with U+FFFD, so that the body is JSON always.
response error_response(
  int status, std::string_view code, std::string_view message, std::string_view param = {});

} // namespace godwit::http
