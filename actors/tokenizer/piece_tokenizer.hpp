#pragma once

#include "actors/tokenizer/text_frame.hpp"
#include "actors/tokenizer/token_table.hpp"
#include "actors/tokenizer/tokenizer.hpp"

#include <optional>
#include <vector>

namespace godwit {

/// Pieces with scores, as SentencePiece's BPE makes them: `tokenizer.ggml.model` is "llama" (Llama 1 and 2,
/// Mistral, Gemma).
///
/// A text is cut at the special tokens in it, and what lies between is merged. User-defined tokens are
/// recognised in every text, control tokens only where asked for; no merge makes either. Where the vocabulary
/// wants it, each text between special tokens gets a space in front, which decoding takes away again. Text is
/// not normalised: a space is what "▁" stands for in the vocabulary, and a "▁" in a text becomes its bytes,
/// so that decoding gives back every text.
class piece_tokenizer final : public tokenizer {
 public:
  /// As tokenizer::load().
  static result<std::shared_ptr<const piece_tokenizer>> load(const gguf::file& file);

  std::vector<token_id> encode(std::string_view text, bool special) const override;
  std::string decode(std::span<const token_id> ids, bool special) const override;
  std::shared_ptr<const token_text> text() const override { return tokens_; }
  std::optional<token_id> begin_token() const override { return frame_.begin; }
  const std::string& digest() const override { return digest_; }

 private:
  piece_tokenizer(std::shared_ptr<const token_table> tokens, text_frame frame)
    : tokens_(std::move(tokens)), frame_(std::move(frame)) {}

  std::shared_ptr<const token_table> tokens_;
  std::vector<float> scores_; ///< of each token
  text_frame frame_;
  std::string digest_;
};

} // namespace godwit
