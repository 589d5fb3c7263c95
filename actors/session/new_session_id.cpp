#include "actors/session/session.hpp"

#include <algorithm>
#include <utility>

namespace godwit {

session_id new_session_id(const std::function<std::uint64_t()>& random) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string id = "ses_";
  for (int half = 0; half < 2; ++half) {
    auto bits = random();
    for (int i = 0; i < 16; ++i, bits >>= 4)
      id += digits[bits & 15U];
  }
  return session_id(std::move(id));
}

bool is_session_id(std::string_view text) {
  return text.size() == 36 && text.starts_with("ses_")
         && std::all_of(text.begin() + 4, text.end(),
           [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

} // namespace godwit
