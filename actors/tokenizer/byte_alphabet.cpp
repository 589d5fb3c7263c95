#include "actors/tokenizer/byte_alphabet.hpp"

#include "actors/text/utf8.hpp"

#include <array>

namespace godwit {

namespace {

/// One past the last character of the alphabet: U+0100 and the 68 bytes that do not stand for themselves.
constexpr std::size_t end_of_alphabet = 0x100 + 68;

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct tables {
  std::array<char32_t, 256> character{};
  std::array<std::int16_t, end_of_alphabet> byte{}; ///< -1 for a character outside the alphabet
};

constexpr tables make_tables() {
  tables made;
  made.byte.fill(-1);
  char32_t next = 0x100;
  for (unsigned i = 0; i < 256; ++i) {
    made.character[i] = stands_for_itself(i) ? static_cast<char32_t>(i) : next++;
    made.byte[made.character[i]] = static_cast<std::int16_t>(i);
  }
  return made;
}

constexpr tables both_ways = make_tables();

} // namespace

char32_t alphabet_character(std::uint8_t byte) {
  return both_ways.character[byte];
}

std::optional<std::string> alphabet_to_bytes(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  while (!text.empty()) {
    const auto next = utf8::first(text);
    if (!next.valid || next.code >= end_of_alphabet || both_ways.byte[next.code] < 0)
      return std::nullopt;
    bytes.push_back(static_cast<char>(both_ways.byte[next.code]));
    text.remove_prefix(next.size);
  }
  return bytes;
}

std::string bytes_to_alphabet(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes)
    utf8::append(text, alphabet_character(static_cast<std::uint8_t>(byte)));
  return text;
}

} // namespace godwit
