#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>

namespace godwit {

/// The object `prompt_tokens_details` of a usage: how many tokens of the prompt were not computed, and which
/// tier of the KV cache had them.
/// @param host of the cached ones, from host memory
/// @param disk and from the cold tier; the rest was on the device
inline nlohmann::ordered_json prompt_details(std::uint64_t cached, std::uint64_t host, std::uint64_t disk) {
  return {{"cached_tokens", cached},
    {"cached_tokens_by_tier", {{"device", cached - host - disk}, {"host", host}, {"disk", disk}}}};
}

} // namespace godwit
