#pragma once

#include "actors/tokenizer/token_text.hpp"
#include "kernels/gguf/file.hpp"
#include "messages/result.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace godwit {

/// What a token is for, after `tokenizer.ggml.token_type` and the ids of end tokens.
enum class token_kind : std::uint8_t {
  text,         ///< merges make it; in byte-level vocabularies it is written in the byte alphabet
  byte,         ///< one byte of what no text token has, in vocabularies of pieces
  user_defined, ///< plain text that is one token wherever it occurs
  control,      ///< steers; made only from its name, and only where special tokens are asked for
  unused,       ///< padding of the vocabulary: has bytes, but no text becomes it
};

/// A hash of bytes that nobody outside the process can predict, so that no choice of tokens makes tables
/// slow.
struct byte_hash {
  std::size_t operator()(std::string_view bytes) const noexcept;
  std::size_t operator()(std::uint64_t number) const noexcept;
};

/// The tokens of a vocabulary: a byte-level one, whose texts are written in an alphabet of bytes, or one of
/// pieces as SentencePiece makes them, where "▁" (U+2581) stands for a space and "<0x0A>" for a byte.
///
/// End tokens are those that `eos_token_id`, `eot_token_id` and `eom_token_id` name, and control tokens of
/// well-known names, such as "<|im_end|>" and "<|eot_id|>": many files name only one of the tokens that their
/// chat template ends a message with.
class token_table final : public token_text {
 public:
  /// @returns `corrupt` naming the key that is missing or does not fit the others
  static result<std::shared_ptr<const token_table>> load(const gguf::file& file);
  /// The same for pieces.
  static result<std::shared_ptr<const token_table>> load_pieces(const gguf::file& file);

  token_id size() const override { return static_cast<token_id>(kinds_.size()); }
  std::string_view bytes(token_id id) const override;
  bool is_control(token_id id) const override;
  bool is_end(token_id id) const override;

  token_kind kind(token_id id) const { return kinds_.at(id); }
  /// The token of kind `text` that stands for these bytes; of several the one with the lowest id.
  std::optional<token_id> find(std::string_view bytes) const;
  /// Bytes of the longest token that find() gives.
  std::size_t longest_text() const { return longest_text_; }
  /// The token of one byte. A byte-level vocabulary may lack those of bytes that hardly any text has.
  std::optional<token_id> of_byte(std::uint8_t byte) const { return of_byte_[byte]; }

 private:
  enum class writing : std::uint8_t { byte_level, pieces };

  static result<std::shared_ptr<const token_table>> load(const gguf::file& file, writing how);
  result<void> add_tokens(const gguf::file& file, writing how);
  /// Keeps the bytes that a text token or byte token stands for.
  result<void> add_token(std::string_view text, token_kind kind, writing how);
  result<void> mark_ends(const gguf::file& file);
  void index_texts();
  result<void> index_bytes(writing how);

  std::string storage_;                                                ///< the bytes of all tokens
  std::vector<std::size_t> ends_;                                      ///< where each token's bytes end
  std::vector<token_kind> kinds_;                                      ///< of each token
  std::vector<bool> end_;                                              ///< of each token: ends an answer
  std::vector<bool> makes_text_;                                       ///< of each token: merges may make it
  std::unordered_map<std::string_view, token_id, byte_hash> by_bytes_; ///< views of storage_
  std::size_t longest_text_ = 0;
  std::array<std::optional<token_id>, 256> of_byte_;
};

/// A flag of the metadata, `otherwise` without the key.
/// @returns `corrupt` if it is no flag
result<bool> find_flag(const gguf::file& file, std::string_view key, bool otherwise);

/// The token id of a metadata key, nothing without the key.
/// @returns `corrupt` if it is no token of a vocabulary of `size`
result<std::optional<token_id>> find_token_id(const gguf::file& file, std::string_view key, token_id size);

} // namespace godwit
