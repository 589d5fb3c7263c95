#pragma once

#include "kernels/memory/kv_layout.hpp"

#include <string>
#include <string_view>

namespace godwit::ops {

/// The arithmetic that an implementation follows, by name and version. Implementations of one contract give
/// the same bits: all targets of the cpu ops share theirs.
/// @param name of the dispatch table
std::string contract_of(std::string_view name);

/// What it keeps keys and values in if nobody says; part of its contract.
kv_type own_kv_type(std::string_view name);

} // namespace godwit::ops
