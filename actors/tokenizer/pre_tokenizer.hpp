#pragma once

#include "messages/result.hpp"

#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace godwit {

/// What `tokenizer.ggml.pre` stands for.
struct pre_tokenizer_rules {
  std::span<const std::string_view> patterns; ///< applied one after the other, each to the pieces so far
  bool whole_words = false; ///< a word that is a token is taken as it is, whatever the merges say
  bool begins = false;      ///< a sequence begins with the begin token unless the file says otherwise
};

/// The rules of a name, or nullptr. The patterns are those that the models were trained with; which names
/// mean the same ones is llama.cpp's list.
const pre_tokenizer_rules* find_pre_tokenizer(std::string_view name);

/// Cuts text into the words within which merges happen. Immutable; any thread may use it.
class pre_tokenizer {
 public:
  /// @pre the patterns compile: they are ours
  explicit pre_tokenizer(const pre_tokenizer_rules& rules);
  ~pre_tokenizer();

  /// All of `text` in order, cut into words that are not empty: what a pattern matches is a word, and what
  /// lies between two matches is one too. Takes time in proportion to the text.
  /// @pre `text` is UTF-8
  std::vector<std::string_view> split(std::string_view text) const;

 private:
  class pattern;

  std::vector<std::unique_ptr<const pattern>> patterns_;
};

} // namespace godwit
