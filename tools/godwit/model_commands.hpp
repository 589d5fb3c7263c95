#pragma once

#include "tools/godwit/output.hpp"

#include <filesystem>
#include <string_view>

namespace godwit::cli {

// Commands that need a model file and no node. What they read from standard input is passed in as `input`.

/// What a model file holds, and what would compute it here.
int show_model(const settings& how, const std::filesystem::path& model);

/// Prints the token ids of `input`, separated by spaces or as a JSON array.
/// @param special recognise control tokens in the text
int tokenize(const settings& how, const std::filesystem::path& model, std::string_view input, bool special);

/// Prints the exact bytes of the token ids in `input`: a JSON array, or numbers separated by white space.
/// Control tokens are printed by their names.
int detokenize(const settings& how, const std::filesystem::path& model, std::string_view input);

/// Prints the prompt that the model's template makes of the JSON array of messages in `input`, and nothing
/// behind it. @param answer end with what begins an answer
int render(const settings& how, const std::filesystem::path& model, std::string_view input, bool answer);

} // namespace godwit::cli
