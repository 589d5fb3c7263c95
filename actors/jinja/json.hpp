#pragma once

#include "actors/jinja/value.hpp"

#include <nlohmann/json_fwd.hpp>

namespace godwit::jinja {

/// A value of the template language from JSON; mappings keep the order that the JSON type has.
/// @returns a fault for integers beyond 64 bits, strings that are not UTF-8, and nesting beyond the limit
outcome<value> from_json(heap& memory, const nlohmann::ordered_json& json);
outcome<value> from_json(heap& memory, const nlohmann::json& json);

/// How `tojson` writes; the defaults are Python's json.dumps() with ensure_ascii off, as transformers has it.
struct json_style {
  bool ascii = false;
  std::optional<std::string> indent;                             ///< of one level; nothing is all in one line
  std::optional<std::pair<std::string, std::string>> separators; ///< between items, and after a key
  bool sort_keys = false;
};

/// json.dumps().
outcome<std::string> to_json(heap& memory, const value& v, const json_style& style);

} // namespace godwit::jinja
