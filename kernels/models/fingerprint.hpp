#pragma once

#include "kernels/gguf/file.hpp"
#include "kernels/memory/kv_layout.hpp"
#include "kernels/threads/team.hpp"

#include <string>
#include <string_view>

namespace godwit {

/// 32 hexadecimal digits of a 128-bit XXH3 over everything that a logit depends on: every tensor's name,
/// type, shape and bytes, the numbers of the model, the contract of the ops that compute, and the layout of
/// KV pages. Two models that share it give the same bits.
/// @param contract of the ops that compute
/// @param numbers what else of the metadata the graph uses, as text
std::string fingerprint_of(
  const gguf::file& file, std::string_view contract, std::string_view numbers, team& threads);

/// The same for pages of another type than the one that the contract implies.
std::string fingerprint_with_pages(std::string_view fingerprint, kv_type type);

} // namespace godwit
