#pragma once

#include "actors/tokenizer/token_table.hpp"
#include "messages/result.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace godwit {

/// Finds tokens in a text that are written there by their names.
class special_tokens {
 public:
  /// Longer names are refused, so that a search takes time in proportion to the text.
  static constexpr std::size_t longest_name = 1024;

  /// Where a name stands.
  struct place {
    std::size_t from = 0;
    std::size_t size = 0;
    token_id id = 0;
  };

  /// @param control look for control tokens as well as user-defined ones
  /// @returns `corrupt` if a name is too long
  static result<special_tokens> make(std::shared_ptr<const token_table> tokens, bool control);

  /// The leftmost place from `from` on where a name stands, and there the longest name: as in the tokenizers
  /// that the vocabularies come from. Of tokens with equal names the lowest id.
  std::optional<place> find(std::string_view text, std::size_t from) const;

 private:
  explicit special_tokens(std::shared_ptr<const token_table> tokens) : tokens_(std::move(tokens)) {}

  std::optional<place> longest_at(std::string_view text, std::size_t from) const;

  std::shared_ptr<const token_table> tokens_;
  std::vector<token_id> by_name_;       ///< in the order of names, then ids
  std::array<bool, 256> begins_name_{}; ///< bytes that a name begins with
};

} // namespace godwit
