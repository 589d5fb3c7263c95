#pragma once

#include "actors/tokenizer/token_text.hpp"
#include "kernels/gguf/file.hpp"
#include "messages/ids.hpp"
#include "messages/result.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace godwit {

/// Text to tokens and back, as a model file's metadata says. Immutable; any thread may use it.
class tokenizer {
 public:
  /// @returns `unsupported` naming `tokenizer.ggml.model` or `tokenizer.ggml.pre` if we do not have it,
  /// `corrupt` naming the key that is missing or does not fit the others
  static result<std::shared_ptr<const tokenizer>> load(const gguf::file& file);

  virtual ~tokenizer() = default;

  /// Any bytes can be encoded; those that are not UTF-8 become byte tokens. Some vocabularies lack the tokens
  /// of a few bytes, such as control characters: these are left out, as by the tokenizers that made the
  /// vocabularies.
  /// @param special recognise control tokens in the text; user-defined ones always are
  virtual std::vector<token_id> encode(std::string_view text, bool special) const = 0;

  /// The exact bytes of the tokens. @param special print control tokens by their names instead of leaving
  /// them out
  /// @pre ids below text()->size()
  virtual std::string decode(std::span<const token_id> ids, bool special) const = 0;

  virtual std::shared_ptr<const token_text> text() const = 0;

  /// The token that begins a sequence, if the model wants one before every prompt. encode() does not add it.
  virtual std::optional<token_id> begin_token() const = 0;
  bool adds_begin() const { return begin_token().has_value(); }

  /// 128 bits over everything that decides the above, as 32 hexadecimal digits: part of a session's
  /// fingerprint.
  virtual const std::string& digest() const = 0;
};

} // namespace godwit
