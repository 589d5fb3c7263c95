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

/// The metadata of a vocabulary of pieces to build on: ids 0 to 2 are <unk>, <s> and </s>, then a token for
/// each byte, and then what is added.
struct tiny_pieces {
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<std::int32_t> types;

  static constexpr std::uint32_t first_byte = 3;

  tiny_pieces() {
    add("<unk>", 0, 2);
    add("<s>", 0, 3);
    add("</s>", 0, 3);
    constexpr std::string_view digits = "0123456789ABCDEF";
    for (unsigned byte = 0; byte < 256; ++byte)
      add(std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">", 0, 6);
  }

  /// @returns its id
  std::uint32_t add(std::string text, float score, std::int32_t type = 1) {
    tokens.push_back(std::move(text));
    scores.push_back(score);
    types.push_back(type);
    return static_cast<std::uint32_t>(tokens.size() - 1);
  }

  /// A writer that holds all of it, for more keys.
  gguf::writer write() const {
    gguf::writer made;
    made.add("tokenizer.ggml.model", "llama");
    made.add_array("tokenizer.ggml.tokens", tokens);
    made.add_array("tokenizer.ggml.scores", scores);
    made.add_array("tokenizer.ggml.token_type", types);
    made.add("tokenizer.ggml.bos_token_id", 1U).add("tokenizer.ggml.eos_token_id", 2U);
    return made;
  }
};

/// Pieces that compete, overlap and build on each other, with characters of two and four bytes.
inline tiny_pieces competing_pieces() {
  tiny_pieces made;
  float score = 0;
  for (const auto* piece : {"ab",
         "\xE2\x96\x81"
         "a",
         "bc", "aa", "aab", "abc", "aaaa", "ca", "\xE2\x96\x81\xE2\x96\x81",
         "\xC3\xA9"
         "a",
         "\xE2\x96\x81"
         "ab"})
    made.add(piece, score -= 1);
  made.add("cab", -2.0F); // as good as another
  for (const auto* letter : {"a", "b", "c", "\xE2\x96\x81", "\xC3\xA9", "\xF0\x9F\x98\x80"})
    made.add(letter, score -= 1);
  made.add("  \n", -1000, 4);
  made.add("<b>", -1000, 4);
  made.add("<ab>", 0, 3);
  made.add("abcabc", 0, 5); // unused: never made
  return made;
}

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
