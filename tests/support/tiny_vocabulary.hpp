#pragma once

#include "actors/tokenizer/byte_alphabet.hpp"
#include "kernels/gguf/file.hpp"
#include "kernels/gguf/writer.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace godwit {

/// The metadata of a byte-level vocabulary to build on: a token for each byte, id = byte, and then what is
/// added.
struct tiny_vocabulary {
  std::string pre = "gpt-2";
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  std::vector<std::string> merges;

  tiny_vocabulary() {
    for (unsigned byte = 0; byte < 256; ++byte) {
      const auto text = static_cast<char>(byte);
      add(bytes_to_alphabet(std::string_view(&text, 1)), 1);
    }
  }

  /// @returns its id
  std::uint32_t add(std::string text, std::int32_t type) {
    tokens.push_back(std::move(text));
    types.push_back(type);
    return static_cast<std::uint32_t>(tokens.size() - 1);
  }

  /// Adds a merge and the token that it makes, from plain bytes. @returns the token's id
  std::uint32_t add_merge(std::string_view left, std::string_view right) {
    merges.push_back(bytes_to_alphabet(left) + " " + bytes_to_alphabet(right));
    return add(bytes_to_alphabet(left) + bytes_to_alphabet(right), 1);
  }

  /// A writer that holds all of it, for more keys.
  gguf::writer write() const {
    gguf::writer made;
    made.add("tokenizer.ggml.model", "gpt2").add("tokenizer.ggml.pre", pre);
    made.add_array("tokenizer.ggml.tokens", tokens);
    made.add_array("tokenizer.ggml.token_type", types);
    made.add_array("tokenizer.ggml.merges", merges);
    return made;
  }
};

/// A file in memory together with its bytes.
class made_file {
 public:
  /// @pre the bytes are a valid file
  explicit made_file(std::vector<std::byte> bytes)
    : bytes_(std::move(bytes)), file_(gguf::file::parse(bytes_).value()) {}

  const gguf::file& operator*() const { return *file_; }

 private:
  std::vector<std::byte> bytes_;
  std::shared_ptr<const gguf::file> file_;
};

} // namespace godwit
