#pragma once

#include <capnp/blob.h>

#include <string>

namespace godwit {

// Texts of letters are strings with a length: they may hold zero bytes, since JSON and models do. Cap'n
// Proto's own conversions stop at the first one.

/// A copy of a letter's text.
inline std::string text_of(capnp::Text::Reader text) {
  return {text.begin(), text.size()};
}

/// A string as a letter's setters take it. @param text lives as long as the result is used
inline capnp::Text::Reader text_view(const std::string& text) {
  return {text.c_str(), text.size()};
}

} // namespace godwit
