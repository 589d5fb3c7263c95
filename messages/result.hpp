#pragma once

#include "messages/error.hpp"

#include <tl/expected.hpp>

#include <string>
#include <utility>

namespace godwit {

/// A value, or the expected failure that took its place.
template <class T>
using result = tl::expected<T, error>;

/// Builds the failure side of a `result`.
inline tl::unexpected<error> fail(
  errc code, std::string message, std::string param = {}, std::string reason = {}) {
  return tl::unexpected<error>(error{code, std::move(message), std::move(param), std::move(reason)});
}

/// Passes another result's failure on.
template <class T>
tl::unexpected<error> fail(const result<T>& failed) {
  return tl::unexpected<error>(failed.error());
}

} // namespace godwit
