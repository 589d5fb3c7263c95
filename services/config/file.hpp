#pragma once

#include "services/config/config.hpp"

namespace godwit::detail {

/// A key of the configuration file with its value as text.
struct file_value {
  std::string key;
  std::string text; ///< a list's elements are joined by commas
  setting_kind kind;
  std::uint32_t line;
};

/// Reads a TOML file. Only flat keys with strings, whole numbers and arrays of strings exist.
/// @returns `io` or `invalid_argument`, the message with path and line
result<std::vector<file_value>> read_config_file(const std::filesystem::path& path);

} // namespace godwit::detail
