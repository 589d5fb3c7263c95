#pragma once

#include <tl/expected.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace godwit {

struct toml_field;

/// A value of a TOML text (toml.io/en/v1.0.0), and where it stands.
struct toml_value {
  using list = std::vector<toml_value>;
  using table = std::vector<toml_field>; ///< in the order of the keys
  struct moment {};                      ///< dates and times, which nobody reads

  std::variant<table, list, std::string, std::int64_t, double, bool, moment> value;
  std::uint32_t line = 0; ///< from 1

  /// Null if it is of another kind.
  template <class T>
  const T* as() const {
    return std::get_if<T>(&value);
  }
  /// The field of a table; null if this is none, or has none of that name.
  const toml_value* find(std::string_view key) const;
};

/// A field of a table. No std::pair: a value holds fields before it is complete itself.
struct toml_field {
  std::string key;
  toml_value value;
};

/// Why a text is no TOML.
struct toml_fault {
  std::uint32_t line = 0;
  std::string what;
};

/// Reads a text whole. @returns a table
tl::expected<toml_value, toml_fault> parse_toml(std::string_view text);

} // namespace godwit
