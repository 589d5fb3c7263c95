#pragma once

#include <capnp/blob.h>

#include <string>

namespace godwit {

/// A copy of a letter's text.
inline std::string text_of(capnp::Text::Reader text) {
  return {text.begin(), text.size()};
}

} // namespace godwit
