#include "tools/godwit/output.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

namespace godwit::cli {

using nlohmann::ordered_json;

namespace {

/// Text of files and nodes for a terminal, which must not take it for commands: control characters escaped.
std::string visible(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  return out;
}

} // namespace

int report(const error& failure, bool json) {
  if (json) {
    ordered_json body{
      {"error", {{"code", failure.reason.empty() ? to_string(failure.code) : failure.reason}}}};
    body["error"]["message"] = failure.message;
    if (!failure.param.empty())
      body["error"]["param"] = failure.param;
    fmt::print(stderr, "{}\n", body.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  } else {
    fmt::print(stderr, "godwit: {}\n", visible(failure.message));
  }
  return exit_failed;
}

void print_json(const ordered_json& value) {
  fmt::print("{}\n", value.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  std::fflush(stdout);
}

void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths.resize(std::max(widths.size(), column + 1));
      widths[column] = std::max(widths[column], row[column].size());
    }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t column = 0; column < row.size(); ++column)
      line += column + 1 < row.size() ? fmt::format("{:<{}}  ", row[column], widths[column]) : row[column];
    fmt::print("{}\n", visible(line));
  }
}

std::string plain(const ordered_json& value) {
  if (value.is_null())
    return {};
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json member(const ordered_json& value, std::string_view path) {
  const auto dot = path.find('.');
  const std::string key(path.substr(0, dot));
  if (!value.is_object() || !value.contains(key))
    return nullptr;
  return dot == std::string_view::npos ? value[key] : member(value[key], path.substr(dot + 1));
}

} // namespace godwit::cli
