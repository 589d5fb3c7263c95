#pragma once

#include "messages/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace godwit {

/// A value of the part of YAML that machines write: blocks of maps and lists, plain and quoted scalars in one
/// line, [] and {}, comments on lines of their own. No anchors, tags, flow, folded texts or several
/// documents.
struct block_yaml {
  struct field;
  using list = std::vector<block_yaml>;
  using map = std::vector<field>; ///< in the file's order, each key once

  std::variant<std::string, list, map> value;
  std::size_t line = 0; ///< from 1

  const std::string* text() const { return std::get_if<std::string>(&value); }
  const list* items() const { return std::get_if<list>(&value); }
  const map* fields() const { return std::get_if<map>(&value); }
  /// The field of a map; null if this is none, or has none of that name.
  const block_yaml* find(std::string_view key) const;

  /// @param text at most 1 MiB, with at most 16 levels
  /// @returns `corrupt` with the line; a text without any value is an empty map
  static result<block_yaml> parse(std::string_view text);
};

struct block_yaml::field {
  std::string key;
  block_yaml value;
};

} // namespace godwit
