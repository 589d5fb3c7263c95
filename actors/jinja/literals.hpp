#pragma once

#include "actors/jinja/fault.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace godwit::jinja {

/// Of ASCII.
constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// A number at the start of a text.
struct number_literal {
  bool is_float = false;
  std::int64_t integer = 0;
  double floating = 0;
  std::size_t size = 0; ///< bytes it takes
};

/// Reads an integer (decimal, 0x, 0o, 0b, with underscores) or a float.
/// @param after_dot the byte before is '.', so that "1.2" is an index 1 and what follows it
outcome<number_literal> read_number(std::string_view bytes, bool after_dot);

/// The bytes that the inside of a string literal means, with Python's escapes.
outcome<std::string> unescape(std::string_view inside);

} // namespace godwit::jinja
