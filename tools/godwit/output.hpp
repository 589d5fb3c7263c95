#pragma once

#include "messages/result.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace godwit::cli {

/// Exit codes that scripts rely on.
inline constexpr int exit_ok = 0;
inline constexpr int exit_failed = 1;
inline constexpr int exit_usage = 2;

/// What the flags before the command say.
struct settings {
  std::string url = "http://127.0.0.1:8080";
  bool json = false;
};

/// Prints a failure to standard error, as JSON if asked for. @returns exit_failed
int report(const error& failure, bool json);

/// Prints a value as one line of JSON.
void print_json(const nlohmann::ordered_json& value);

/// Prints rows in columns, the first row as head.
void print_table(const std::vector<std::vector<std::string>>& rows);

/// A value as a person reads it: strings without quotes, nothing for null.
std::string plain(const nlohmann::ordered_json& value);

/// The member of an object reached by a path such as "owner.node", or null.
nlohmann::ordered_json member(const nlohmann::ordered_json& value, std::string_view path);

} // namespace godwit::cli
