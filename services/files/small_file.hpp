#pragma once

#include "messages/result.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace godwit {

inline constexpr std::size_t most_small_file_bytes = std::size_t{1} << 20;

/// The content of a file of settings, which somebody else writes.
/// @param what the kind of file, as messages name it: "configuration file"
/// @returns `not_found`, `io` where it cannot be read, `invalid_argument` over 1 MiB
result<std::string> read_small_file(const std::filesystem::path& path, std::string_view what);

} // namespace godwit
