#pragma once

#include <string_view>

namespace godwit::letters {

/// A character whose upper case is more than one character.
struct special_casing {
  char32_t code;
  std::string_view upper; ///< UTF-8
  std::string_view title; ///< UTF-8
};

/// The entry of a character, or nullptr: most have simple mappings only.
const special_casing* find_special_casing(char32_t code);

} // namespace godwit::letters
