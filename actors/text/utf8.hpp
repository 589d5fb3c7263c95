#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace godwit::utf8 {

/// One step through bytes that should be UTF-8.
struct character {
  char32_t code = 0;     ///< U+FFFD where the bytes are not a character
  std::uint8_t size = 0; ///< bytes taken, 1 to 4
  bool valid = false;    ///< the bytes are a character (Unicode 15, table 3-7)
  bool cut = false;      ///< not valid only because the text ends within it
};

/// The character that `bytes`, which is not empty, starts with. Where there is none, the longest start of one
/// is taken as a whole, at least one byte: the "maximal subpart" that decoders replace by one U+FFFD.
character first(std::string_view bytes);

/// True if all of `bytes` is UTF-8.
bool valid(std::string_view bytes);

/// Number of characters; a maximal subpart counts as one.
std::size_t length(std::string_view bytes);

/// Writes a code point; it must be a Unicode scalar value.
void append(std::string& out, char32_t code);

/// How many bytes at the end start a character without finishing it: 0 to 3.
std::size_t cut_tail(std::string_view bytes);

/// U+FFFD in UTF-8.
inline constexpr std::string_view replacement = "\xEF\xBF\xBD";

} // namespace godwit::utf8
