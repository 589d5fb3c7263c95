#include "actors/text/utf8.hpp"

#include <algorithm>

namespace godwit::utf8 {

namespace {

/// What a lead byte promises: how many bytes follow, and the range of the first of them (table 3-7).
struct lead {
  std::uint8_t trailing = 0;
  std::uint8_t low = 0x80;
  std::uint8_t high = 0xBF;
  bool valid = true;
};

lead classify(std::uint8_t byte) {
  if (byte < 0x80)
    return {.trailing = 0};
  if (byte >= 0xC2 && byte <= 0xDF)
    return {.trailing = 1};
  if (byte == 0xE0)
    return {.trailing = 2, .low = 0xA0};
  if (byte == 0xED)
    return {.trailing = 2, .high = 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF)
    return {.trailing = 2};
  if (byte == 0xF0)
    return {.trailing = 3, .low = 0x90};
  if (byte >= 0xF1 && byte <= 0xF3)
    return {.trailing = 3};
  if (byte == 0xF4)
    return {.trailing = 3, .high = 0x8F};
  return {.valid = false};
}

} // namespace

character first(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); };
  const auto promise = classify(at(0));
  if (!promise.valid)
    return {.code = U'\uFFFD', .size = 1};
  if (promise.trailing == 0)
    return {.code = at(0), .size = 1, .valid = true};
  char32_t code = at(0) & (0x3Fu >> promise.trailing);
  for (std::uint8_t i = 1; i <= promise.trailing; ++i) {
    if (i >= bytes.size())
      return {.code = U'\uFFFD', .size = i, .cut = true};
    const auto low = i == 1 ? promise.low : std::uint8_t{0x80};
    const auto high = i == 1 ? promise.high : std::uint8_t{0xBF};
    if (at(i) < low || at(i) > high)
      return {.code = U'\uFFFD', .size = i};
    code = (code << 6) | (at(i) & 0x3Fu);
  }
  return {.code = code, .size = static_cast<std::uint8_t>(promise.trailing + 1), .valid = true};
}

bool valid(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto next = first(bytes);
    if (!next.valid)
      return false;
    bytes.remove_prefix(next.size);
  }
  return true;
}

std::size_t length(std::string_view bytes) {
  std::size_t count = 0;
  for (; !bytes.empty(); ++count)
    bytes.remove_prefix(first(bytes).size);
  return count;
}

void append(std::string& out, char32_t code) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

std::size_t cut_tail(std::string_view bytes) {
  // A character that is cut has at most three bytes here, and only its first is a lead byte.
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, bytes.size()); ++back) {
    const auto tail = bytes.substr(bytes.size() - back);
    if ((static_cast<std::uint8_t>(tail[0]) & 0xC0) != 0x80) {
      const auto last = first(tail);
      return last.cut ? back : 0;
    }
  }
  return 0;
}

} // namespace godwit::utf8
