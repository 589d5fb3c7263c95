#pragma once

#include <string>
#include <string_view>

namespace godwit::letters {

// Properties and case of characters as Python's str has them; the data is utf8proc's. `text` is UTF-8; bytes
// that are not are kept as they are.

/// str.isspace(): what strip() and split() without arguments take for white space.
bool is_space(char32_t code);
/// str.isprintable(): what repr() shows as it is.
bool is_printable(char32_t code);
bool is_alpha(char32_t code);
/// A decimal digit of any script.
bool is_decimal(char32_t code);
/// A decimal digit, or one with the form of a superscript, a circle or the like.
bool is_digit(char32_t code);
/// A character with a numeric value: decimal digits, superscripts, Roman numerals, fractions.
bool is_numeric(char32_t code);
bool is_lower(char32_t code);
bool is_upper(char32_t code);
bool is_title(char32_t code);

/// str.upper(), with the mappings to more than one character ("ß" to "SS").
std::string upper(std::string_view text);
/// str.lower(), with the rule for a final sigma.
std::string lower(std::string_view text);
/// str.title(): the first letter of every run of letters in title case, the others in lower case.
std::string title(std::string_view text);
/// str.capitalize(): the first character in title case, the others in lower case.
std::string capitalize(std::string_view text);
/// str.swapcase().
std::string swapcase(std::string_view text);

} // namespace godwit::letters
