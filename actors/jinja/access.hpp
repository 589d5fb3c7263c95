#pragma once

#include "actors/jinja/arguments.hpp"
#include "actors/jinja/value.hpp"

namespace godwit::jinja {

/// A method of a built-in type, or nullptr.
/// @returns a fault if Python has the method and this interpreter does not
outcome<method_code> find_method(const value& object, std::string_view name);

/// `object.name`: the type's method, else the entry of that key, as the template language prefers it.
/// @param known the name as the template holds it, for messages
outcome<value> get_attribute(
  heap& memory, const value& object, std::string_view name, const std::string* known);

/// `object[key]`: the entry, else the method of that name.
/// @param known the key as the template holds it if it is a constant string, for messages; or nullptr
outcome<value> get_item(heap& memory, const value& object, const value& key, const std::string* known);

/// `object[start:stop:step]`; a bound that is None or absent is the natural one.
outcome<value> get_slice(
  heap& memory, const value& object, const value& start, const value& stop, const value& step);

/// Follows a path such as "function.name" or "0.role" by get_item(), as the `attribute` parameters of filters
/// do.
class attribute_path {
 public:
  /// @param path a string, an int, or None for the object itself
  static outcome<attribute_path> parse(heap& memory, const value& path);
  outcome<value> follow(heap& memory, value object) const;
  /// The same, with `otherwise`, unless it is nullptr or None, where a step leads to nothing.
  outcome<value> follow_or(heap& memory, value object, const value* otherwise) const;

 private:
  std::vector<value> steps_;
};

/// The index of a character in bytes of UTF-8.
std::size_t offset_of(const text& t, std::size_t character);

} // namespace godwit::jinja
