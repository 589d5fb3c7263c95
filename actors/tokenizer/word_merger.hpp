#pragma once

#include "actors/tokenizer/merge_table.hpp"
#include "actors/tokenizer/token_table.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace godwit {

/// Turns words into tokens: begins with one token a byte, and merges the pair of lowest rank, the leftmost of
/// equals, until no pair merges (Sennrich, Haddow and Birch 2016). Takes O(n log n) for a word of n bytes.
/// Holds memory to reuse, so each thread needs its own.
class word_merger {
 public:
  /// Both outlive the object.
  word_merger(const token_table& tokens, const merge_table& merges) : tokens_(tokens), merges_(merges) {}

  /// Appends the tokens of a word. Bytes that the vocabulary has no token for are left out first, so that
  /// their neighbours may merge: so do the tokenizers that such vocabularies come from.
  void append(std::string_view word, std::vector<token_id>& out);

 private:
  static constexpr std::uint32_t none = 0xFFFF'FFFF;

  /// A token of the word so far; `id` is none once it was merged into its left neighbour.
  struct symbol {
    token_id id;
    std::uint32_t previous;
    std::uint32_t next;
  };

  /// A merge that was possible when it was found. It still is if both tokens are where they were.
  struct candidate {
    std::uint32_t rank;
    std::uint32_t at; ///< index of the left symbol
    token_id left;
    token_id right;
    token_id made;
  };

  /// Orders a heap so that its top is the lowest rank, and of equals the leftmost.
  static bool later(const candidate& a, const candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
  }

  /// Puts the merge of a symbol and the next one behind the heap. @returns false if there is none
  bool consider(std::uint32_t at);
  void merge_all();

  const token_table& tokens_;
  const merge_table& merges_;
  std::vector<symbol> symbols_;
  std::vector<candidate> heap_;
};

} // namespace godwit
