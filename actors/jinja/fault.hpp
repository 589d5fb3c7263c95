#pragma once

#include "messages/result.hpp"

#include <string>
#include <utility>

namespace godwit::jinja {

/// Why parsing or rendering stopped, with the line of the template where it did.
struct fault {
  errc code = errc::invalid_argument;
  std::string message;
  int line = 0; ///< 0 until the interpreter, which knows the line, has passed it on
};

/// A value, or the fault that took its place.
template <class T>
using outcome = tl::expected<T, fault>;

inline tl::unexpected<fault> stop(std::string message) {
  return tl::unexpected<fault>(fault{errc::invalid_argument, std::move(message)});
}

inline tl::unexpected<fault> stop(errc code, std::string message, int line = 0) {
  return tl::unexpected<fault>(fault{code, std::move(message), line});
}

} // namespace godwit::jinja

#define JINJA_JOIN_(a, b) a##b
#define JINJA_JOIN(a, b) JINJA_JOIN_(a, b)

/// Declares what an outcome holds, or returns its fault: `JINJA_TRY(const auto x, f());`
#define JINJA_TRY(declaration, ...)                                                                          \
  auto JINJA_JOIN(outcome_, __LINE__) = (__VA_ARGS__);                                                       \
  if (!JINJA_JOIN(outcome_, __LINE__))                                                                       \
    return tl::unexpected(std::move(JINJA_JOIN(outcome_, __LINE__).error()));                                \
  declaration = std::move(*JINJA_JOIN(outcome_, __LINE__))

/// Returns the fault of an outcome whose value does not matter.
#define JINJA_CHECK(...)                                                                                     \
  if (auto outcome_ = (__VA_ARGS__); !outcome_)                                                              \
  return tl::unexpected(std::move(outcome_.error()))
