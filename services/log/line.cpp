#include "services/log/line.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <ctime>

namespace godwit {

namespace {

constexpr std::array<std::string_view, 6> names{"trace", "debug", "info", "warn", "error", "off"};

std::string format_time(std::chrono::system_clock::time_point when) {
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(when.time_since_epoch()).count();
  const std::time_t seconds = since / 1000;
  std::tm t{};
  gmtime_r(&seconds, &t);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", t, since % 1000);
}

void append_escaped(std::string& out, std::string_view text, bool quoted) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    else if (quoted && (c == '"' || c == '\\'))
      (out += '\\') += c;
    else
      out += c;
  }
}

void append_text(std::string& out, std::string_view value) {
  const bool plain = !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
    return static_cast<unsigned char>(c) > 0x20 && c != '"' && c != '=' && c != '\\' && c != 0x7f;
  });
  if (plain) {
    out += value;
    return;
  }
  out += '"';
  append_escaped(out, value, true);
  out += '"';
}

std::string text_line(std::chrono::system_clock::time_point when, log_level level, std::string_view message,
  logger::fields more) {
  std::string out = fmt::format("{} {:5} ", format_time(when), names[static_cast<std::size_t>(level)]);
  append_escaped(out, message, false);
  for (const auto& field : more) {
    (out += ' ') += field.name;
    out += '=';
    if (const auto* text = std::get_if<std::string_view>(&field.value))
      append_text(out, *text);
    else
      std::visit(
        [&](const auto& value) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(value)>, std::string_view>)
            out += fmt::format("{}", value);
        },
        field.value);
  }
  return out;
}

std::string json_line(std::chrono::system_clock::time_point when, log_level level, std::string_view message,
  logger::fields more) {
  nlohmann::ordered_json line{{"ts", format_time(when)}, {"level", names[static_cast<std::size_t>(level)]},
    {"msg", std::string(message)}};
  if (more.size() > 0) {
    auto& fields = line["fields"] = nlohmann::ordered_json::object();
    for (const auto& field : more)
      std::visit([&](const auto& value) { fields[std::string(field.name)] = value; }, field.value);
  }
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

} // namespace

result<log_level> parse_log_level(std::string_view name) {
  const auto* found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    return fail(errc::invalid_argument, "there is no such log level", "log_level");
  return static_cast<log_level>(found - names.begin());
}

std::string format_log_line(bool json, std::chrono::system_clock::time_point when, log_level level,
  std::string_view message, logger::fields more) {
  return json ? json_line(when, level, message, more) : text_line(when, level, message, more);
}

} // namespace godwit
