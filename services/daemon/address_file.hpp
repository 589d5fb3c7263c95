#pragma once

#include "messages/result.hpp"

#include <filesystem>
#include <string>

namespace godwit {

/// The connection string of a database that a file holds in its first line.
/// @param setting that names the file
/// @returns `io`, or `invalid_argument` for a file that is empty or too large, with `param` naming the
/// setting
result<std::string> address_in(const std::filesystem::path& path, const std::string& setting);

} // namespace godwit
