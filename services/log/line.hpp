#pragma once

#include "services/log/log.hpp"

#include <chrono>
#include <string>
#include <string_view>

namespace godwit {

/// One log line without its newline. A line is always one line: control characters are escaped, and what is
/// not UTF-8 becomes U+FFFD in JSON.
std::string format_log_line(bool json, std::chrono::system_clock::time_point when, log_level level,
  std::string_view message, logger::fields more);

} // namespace godwit
