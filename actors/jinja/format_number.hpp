#pragma once

#include "actors/jinja/value.hpp"

namespace godwit::jinja {

/// How one field of a format is to be written; shared by `%` and `format()`.
struct number_format {
  char type = 0;   ///< as in Python: d i u x X o b e E f F g G %; 0 is the default form
  char sign = '-'; ///< '-' only if negative, '+' always, ' ' a space for positive ones
  bool alternate = false;
  char group = 0; ///< ',' or '_' between thousands
  int precision = -1;
  std::string fill = " "; ///< one character
  char align = 0;         ///< '<' '>' '^' '='; 0 is the default of the type
  std::int64_t width = 0;
};

/// Widths and precisions from a template stay below this.
inline constexpr std::int64_t most_width = 100'000;

/// An integer in the base of its type, filled to its width.
std::string format_integer(std::int64_t number, const number_format& how);
/// A float, filled to its width.
std::string format_float(double number, const number_format& how);
/// A text, cut to its precision and filled to its width.
std::string format_text(std::string_view bytes, const number_format& how);

} // namespace godwit::jinja
