#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

namespace godwit {

enum class log_level { trace, debug, info, warn, error, off };

/// "info" and so on. @returns `invalid_argument`
result<log_level> parse_log_level(std::string_view name);

/// A named value beside a log message.
struct log_field {
  std::string_view name;
  std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool> value;
};

/// Where a process says what it does. Any thread may write; writing does not wait for the reader: lines are
/// dropped, oldest first, when thousands of them wait. What users wrote, and what models answered, is never
/// logged.
class logger {
 public:
  using fields = std::initializer_list<log_field>;

  virtual ~logger() = default;

  virtual bool wants(log_level level) const = 0;
  virtual void write(log_level level, std::string_view message, fields more = {}) = 0;

  void debug(std::string_view message, fields more = {}) { write(log_level::debug, message, more); }
  void info(std::string_view message, fields more = {}) { write(log_level::info, message, more); }
  void warn(std::string_view message, fields more = {}) { write(log_level::warn, message, more); }
  void error(std::string_view message, fields more = {}) { write(log_level::error, message, more); }
};

struct log_options {
  log_level level = log_level::info;
  bool json = false; ///< else text
};

/// A log that writes lines to a file that stays open, such as stderr.
///   text: 2026-01-31T09:00:00.123Z info  the message name=value other="two words"
///   JSON: {"ts":"2026-01-31T09:00:00.123Z","level":"info","msg":"the message","fields":{"name":"value"}}
std::shared_ptr<logger> make_logger(std::FILE* to, const log_options& options);

} // namespace godwit
