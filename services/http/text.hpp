#pragma once

#include <algorithm>
#include <string_view>

namespace godwit::http {

/// Lower case of ASCII letters, whatever the locale.
constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Field names, methods of coding and the like are compared without case (RFC 9110, 5.1).
constexpr bool same_token(std::string_view a, std::string_view b) {
  return std::equal(
    a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

} // namespace godwit::http
