#pragma once

#include <string>
#include <string_view>

namespace godwit::ops {

/// The arithmetic that an implementation follows, by name and version. Implementations of one contract give
/// the same bits: all targets of the cpu ops share theirs.
/// @param name of the dispatch table
std::string contract_of(std::string_view name);

} // namespace godwit::ops
