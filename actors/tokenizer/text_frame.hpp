#pragma once

#include "actors/tokenizer/special_tokens.hpp"
#include "actors/tokenizer/token_table.hpp"
#include "kernels/gguf/file.hpp"
#include "messages/result.hpp"

#include <memory>
#include <optional>

namespace godwit {

/// What every kind of vocabulary says of a text besides how it is cut and merged.
struct text_frame {
  special_tokens everywhere;  ///< user-defined tokens
  special_tokens where_asked; ///< and control tokens
  bool space_prefix = false;  ///< text gets a space in front
  std::optional<token_id> begin;

  /// @param begins whether a text begins with a token of its own, where the file does not say
  /// @param space_prefix where the file does not say
  /// @returns `corrupt`
  static result<text_frame> load(
    const gguf::file& file, const std::shared_ptr<const token_table>& tokens, bool begins, bool space_prefix);
};

} // namespace godwit
