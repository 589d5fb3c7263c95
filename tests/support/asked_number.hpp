#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace godwit {

/// How much of what happens on one thread is tried: under ThreadSanitizer, which finds nothing there and
/// makes it ten times slower, a fifth.
constexpr std::uint64_t on_one_thread(std::uint64_t much) {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
  return much / 5;
#endif
#endif
  return much;
}

/// How much of something a test is to do: what an environment variable says, for runs of hours or of one
/// seed.
/// @throws std::runtime_error if it says anything but a number, so that a typing error does not pass as a
/// soak
inline std::uint64_t asked_number(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  if (text == nullptr)
    return otherwise;
  char* end = nullptr;
  errno = 0;
  const auto number = std::strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != '\0' || errno != 0)
    throw std::runtime_error(std::string(variable) + " is not a number: " + text);
  return number;
}

} // namespace godwit
