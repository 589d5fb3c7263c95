#include "services/toml/toml.hpp"

// The only translation unit that sees toml++.
#include <toml++/toml.h>

namespace godwit {

namespace {

std::uint32_t line_of(const toml::source_region& where) {
  return static_cast<std::uint32_t>(where.begin.line);
}

toml_value copy(const toml::node& node);

toml_value::table copy_fields(const toml::table& from) {
  toml_value::table out;
  for (const auto& [key, node] : from)
    out.push_back({std::string(key.str()), copy(node)});
  return out;
}

toml_value copy(const toml::node& node) {
  toml_value out{toml_value::moment{}, line_of(node.source())};
  if (const auto* text = node.as_string())
    out.value = text->get();
  else if (const auto* number = node.as_integer())
    out.value = number->get();
  else if (const auto* real = node.as_floating_point())
    out.value = real->get();
  else if (const auto* truth = node.as_boolean())
    out.value = truth->get();
  else if (const auto* table = node.as_table())
    out.value = copy_fields(*table);
  else if (const auto* array = node.as_array()) {
    toml_value::list items;
    for (const auto& each : *array)
      items.push_back(copy(each));
    out.value = std::move(items);
  }
  return out;
}

} // namespace

const toml_value* toml_value::find(std::string_view key) const {
  if (const auto* const fields = as<table>())
    for (const auto& [name, field] : *fields)
      if (name == key)
        return &field;
  return nullptr;
}

tl::expected<toml_value, toml_fault> parse_toml(std::string_view text) {
  try {
    return toml_value{copy_fields(toml::parse(text)), 1};
  } catch (const toml::parse_error& failure) {
    return tl::unexpected(toml_fault{line_of(failure.source()), std::string(failure.description())});
  }
}

} // namespace godwit
