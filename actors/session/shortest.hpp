#pragma once

#include <charconv>

namespace godwit {

/// The double nearest to a float's shortest decimal, so that JSON shows 0.7 and not 0.699999988079071.
inline double shortest(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  double out = value;
  std::from_chars(text, end, out);
  return out;
}

} // namespace godwit
