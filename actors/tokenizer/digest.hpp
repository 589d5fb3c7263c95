#pragma once

#include "actors/tokenizer/pre_tokenizer.hpp"
#include "kernels/gguf/file.hpp"

#include <string>

namespace godwit {

/// XXH3-128 over all of a file's metadata that decides how text is encoded and decoded, as 32 hexadecimal
/// digits. Every field is preceded by its length, so that no two files run into each other.
std::string tokenizer_digest(const gguf::file& file, const pre_tokenizer_rules& rules);
/// The same for a vocabulary of pieces.
std::string piece_tokenizer_digest(const gguf::file& file);

} // namespace godwit
