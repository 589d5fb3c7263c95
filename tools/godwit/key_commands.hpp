#pragma once

#include "tools/godwit/output.hpp"

#include <filesystem>
#include <string>

namespace godwit::cli {

// Keys of nodes; no node is needed.

/// Makes the keys of a node: NAME.secret and NAME.public in a folder. Prints where they are and the public
/// line.
int keys_new(const settings& how, const std::string& name, const std::filesystem::path& folder);

/// Prints the public line of a file: of a secret key, or each one of a list of public keys.
int keys_show(const settings& how, const std::filesystem::path& file);

} // namespace godwit::cli
