#pragma once

#include "messages/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace godwit::http {

/// A request target, taken apart and decoded.
struct parsed_target {
  std::string path; ///< begins with '/'
  std::vector<std::pair<std::string, std::string>> query;

  bool operator==(const parsed_target&) const = default;
};

/// Parameters that a query may have.
inline constexpr std::size_t max_query_parameters = 64;

/// Takes a target in origin form ("/a?b=c") or absolute form ("http://host/a", RFC 9112, 3.2) apart. Path and
/// query are decoded after they were split, so an encoded '/', '&' or '=' never splits. In the query '+' is a
/// space, as HTML forms write it.
/// @returns `invalid_argument` for other forms, a bad escape, an encoded NUL or too many parameters
result<parsed_target> parse_target(std::string_view target);

/// Replaces "%41" by "A".
/// @returns `invalid_argument` for an escape that is not two hexadecimal digits, or stands for NUL
result<std::string> percent_decode(std::string_view text, bool plus_is_space = false);

} // namespace godwit::http
