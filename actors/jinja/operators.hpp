#pragma once

#include "actors/jinja/value.hpp"

namespace godwit::jinja {

// What Python's operators and built-in functions do with values.

enum class operation : std::uint8_t { add, subtract, multiply, divide, floor_divide, modulo, power };
enum class comparison : std::uint8_t {
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in
};

/// bool().
bool truth(const value& v);
/// `==`; values of unlike types are unequal.
bool equal(budget& costs, const value& left, const value& right);
/// `<`, for numbers, strings, lists and tuples.
outcome<bool> less(budget& costs, const value& left, const value& right);
/// Any comparison operator.
outcome<bool> compare(heap& memory, comparison how, const value& left, const value& right);
/// `in`.
outcome<bool> contains(heap& memory, const value& container, const value& item);

/// `+ - * / // % **`.
outcome<value> calculate(heap& memory, operation what, const value& left, const value& right);
/// Unary `-` and `+`.
outcome<value> negate(const value& v);
outcome<value> plus(const value& v);

/// len(), in characters, elements or entries.
outcome<std::size_t> length_of(const value& v);
/// Whether iter() would work.
bool is_iterable(const value& v);
/// list(): the elements, characters or keys. An iterator is read to its end.
outcome<std::vector<value>> items_of(heap& memory, const value& v);

/// Python's `left % right` for a string.
outcome<value> format_percent(heap& memory, const text& form, const value& right);

/// HTML-escapes as MarkupSafe does.
std::string escape_html(std::string_view bytes);

/// An int value from a size.
inline value count_value(std::size_t n) {
  return static_cast<std::int64_t>(n);
}

} // namespace godwit::jinja
