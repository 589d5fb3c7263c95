#pragma once

#include "actors/tokenizer/merge_table.hpp"
#include "actors/tokenizer/pre_tokenizer.hpp"
#include "actors/tokenizer/text_frame.hpp"
#include "actors/tokenizer/token_table.hpp"
#include "actors/tokenizer/tokenizer.hpp"

#include <optional>

namespace godwit {

/// Byte-level byte pair encoding: `tokenizer.ggml.model` is "gpt2".
///
/// A text is cut at the special tokens in it, what lies between at bytes that are not UTF-8, and the rest
/// into words by the pre-tokenizer; a word's bytes are merged. User-defined tokens are recognised in every
/// text, control tokens only where asked for, as llama.cpp does. Text is not normalised, so decoding gives it
/// back.
class bpe_tokenizer final : public tokenizer {
 public:
  /// As tokenizer::load().
  static result<std::shared_ptr<const bpe_tokenizer>> load(const gguf::file& file);

  std::vector<token_id> encode(std::string_view text, bool special) const override;
  std::string decode(std::span<const token_id> ids, bool special) const override;
  std::shared_ptr<const token_text> text() const override { return tokens_; }
  std::optional<token_id> begin_token() const override { return frame_.begin; }
  const std::string& digest() const override { return digest_; }

 private:
  class encoding;

  bpe_tokenizer(std::shared_ptr<const token_table> tokens, merge_table merges, text_frame frame,
    const pre_tokenizer_rules& rules);

  std::shared_ptr<const token_table> tokens_;
  merge_table merges_;
  text_frame frame_;
  pre_tokenizer words_;
  bool whole_words_;
  std::string digest_;
};

} // namespace godwit
