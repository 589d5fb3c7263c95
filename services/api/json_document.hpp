#pragma once

#include "messages/result.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <string_view>

namespace godwit {

/// What a JSON body may at most be. The counts bound the memory of the parsed form, which is many times that
/// of the text.
struct json_limits {
  std::size_t bytes = 32'000'000;
  std::size_t depth = 128;      ///< of objects and lists within each other
  std::size_t values = 250'000; ///< numbers, texts, objects, lists and so on, all together
};

/// Parses a request's body: RFC 8259 in UTF-8 and nothing beside it. Stricter than the RFC asks in two
/// points: a key that appears twice in an object is refused, since readers disagree on which one counts, and
/// so is U+0000, which not every store of texts keeps.
/// @returns `too_large` over `bytes`; else `invalid_argument` with the place but not the text of the fault
result<nlohmann::json> parse_json_document(std::string_view body, const json_limits& limits = {});

} // namespace godwit
