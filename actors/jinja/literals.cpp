#include "actors/jinja/literals.hpp"

#include "actors/text/utf8.hpp"

#include <charconv>
#include <cstdlib>

namespace godwit::jinja {

namespace {

/// The length of digits with single underscores between them.
template <class Is>
std::size_t digits_at(std::string_view bytes, std::size_t from, Is is) {
  auto at = from;
  while (at < bytes.size()
         && (is(bytes[at]) || (bytes[at] == '_' && at > from && at + 1 < bytes.size() && is(bytes[at + 1]))))
    ++at;
  return at - from;
}

std::string plain(std::string_view digits) {
  std::string out(digits);
  std::erase(out, '_');
  return out;
}

outcome<number_literal> integer(std::string_view digits, int base, std::size_t size) {
  const auto text = plain(digits);
  number_literal out{.size = size};
  const auto end = std::from_chars(text.data(), text.data() + text.size(), out.integer, base);
  if (end.ec != std::errc{})
    return stop(errc::unsupported, "integers beyond 64 bits are not supported");
  return out;
}

int hex_digit(char c) {
  if (is_digit(c))
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return -1;
}

/// The code point of \xhh, \uhhhh or \Uhhhhhhhh.
outcome<char32_t> hex_escape(std::string_view digits, std::size_t count) {
  char32_t code = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const int digit = i < digits.size() ? hex_digit(digits[i]) : -1;
    if (digit < 0)
      return stop("a truncated escape in a string");
    code = code * 16 + static_cast<char32_t>(digit);
  }
  if (code >= 0xD800 && code < 0xE000)
    return stop(errc::unsupported, "surrogates in strings are not supported");
  if (code > 0x10FFFF)
    return stop("an escape names no Unicode character");
  return code;
}

} // namespace

outcome<number_literal> read_number(std::string_view bytes, bool after_dot) {
  const auto whole = digits_at(bytes, 0, is_digit);
  if (!after_dot) {
    auto at = whole;
    if (at + 1 < bytes.size() && bytes[at] == '.' && is_digit(bytes[at + 1]))
      at += 1 + digits_at(bytes, at + 1, is_digit);
    if (at + 1 < bytes.size() && (bytes[at] == 'e' || bytes[at] == 'E')) {
      const auto exponent = at + 1 + (bytes[at + 1] == '+' || bytes[at + 1] == '-' ? 1 : 0);
      if (const auto size = digits_at(bytes, exponent, is_digit); size > 0)
        at = exponent + size;
    }
    if (at > whole)
      return number_literal{
        .is_float = true, .floating = std::strtod(plain(bytes.substr(0, at)).c_str(), nullptr), .size = at};
  }
  if (bytes.size() > 2 && bytes[0] == '0') {
    const char letter = static_cast<char>(bytes[1] | 0x20);
    const int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    const auto is = [&](char c) { return hex_digit(c) >= 0 && hex_digit(c) < base; };
    const auto start = std::size_t{2} + (bytes[2] == '_' ? 1 : 0);
    if (const auto size = base != 0 ? digits_at(bytes, start, is) : 0; size > 0)
      return integer(bytes.substr(start, size), base, start + size);
  }
  if (bytes[0] == '0') // zeros only: what follows is another token
    return integer("0", 10, digits_at(bytes, 0, [](char c) { return c == '0'; }));
  return integer(bytes.substr(0, whole), 10, whole);
}

outcome<std::string> unescape(std::string_view inside) {
  std::string out;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] != '\\') {
      out.push_back(inside[i]);
      continue;
    }
    const char c = ++i < inside.size() ? inside[i] : 0;
    constexpr std::string_view letters = "\\'\"abfnrtv";
    constexpr std::string_view meanings = "\\'\"\a\b\f\n\r\t\v";
    if (c == 0 && i >= inside.size())
      return stop("a string ends with a backslash");
    if (c == '\n')
      continue;
    if (const auto found = letters.find(c); found != std::string_view::npos) {
      out.push_back(meanings[found]);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const std::size_t count = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      JINJA_TRY(const auto code, hex_escape(inside.substr(i + 1), count));
      utf8::append(out, code);
      i += count;
    } else if (c >= '0' && c <= '7') {
      char32_t code = 0;
      std::size_t n = 0;
      for (; n < 3 && i + n < inside.size() && inside[i + n] >= '0' && inside[i + n] <= '7'; ++n)
        code = code * 8 + static_cast<char32_t>(inside[i + n] - '0');
      utf8::append(out, code);
      i += n - 1;
    } else if (c == 'N') {
      return stop(errc::unsupported, "characters by their names (\\N) are not supported");
    } else {
      out.push_back('\\');
      out.push_back(c);
    }
  }
  return out;
}

} // namespace godwit::jinja
