#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace godwit {

// Byte-level vocabularies write tokens in an alphabet of 256 printable characters, one for each byte.
// Printable Latin-1 stands for itself; the other bytes, in ascending order, are the characters from U+0100
// on, so that a space is "Ġ" (U+0120). Source: bytes_to_unicode() of GPT-2's encoder.

/// The character that stands for a byte.
char32_t alphabet_character(std::uint8_t byte);

/// The bytes that a text of the alphabet stands for; nothing if another character occurs.
std::optional<std::string> alphabet_to_bytes(std::string_view text);

/// The text of the alphabet that stands for the bytes.
std::string bytes_to_alphabet(std::string_view bytes);

} // namespace godwit
