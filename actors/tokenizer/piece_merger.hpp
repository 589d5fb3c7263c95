#pragma once

#include "actors/tokenizer/token_table.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace godwit {

/// Turns text into pieces as SentencePiece's BPE does (Kudo and Richardson 2018): begins with one symbol a
/// character, and merges the neighbours that make the piece of the highest score, the leftmost of equals,
/// until no two make a piece. A character that is no piece becomes the tokens of its bytes. Takes O(n log n)
/// for n bytes. Holds memory to reuse, so each thread needs its own.
class piece_merger {
 public:
  /// Both outlive the object. @param scores of each token
  piece_merger(const token_table& tokens, std::span<const float> scores) : tokens_(tokens), scores_(scores) {}

  /// Appends the tokens of a text. Bytes that are not UTF-8 are symbols of their own.
  /// @pre text is shorter than 4 GiB
  void append(std::string_view text, std::vector<token_id>& out);

 private:
  static constexpr std::uint32_t none = 0xFFFF'FFFF;

  /// Bytes of the text that stand together so far; of size 0 once they were merged into the left neighbour.
  struct symbol {
    std::uint32_t from;
    std::uint32_t size;
    std::uint32_t previous;
    std::uint32_t next;
  };

  /// A merge that was possible when it was found. It still is if the two symbols have the same size together.
  struct candidate {
    float score;
    std::uint32_t at; ///< index of the left symbol
    std::uint32_t size;
  };

  /// Orders a heap so that its top is the highest score, and of equals the leftmost.
  static bool later(const candidate& a, const candidate& b) {
    return a.score != b.score ? a.score < b.score : a.at > b.at;
  }

  void cut(std::string_view text);
  /// Puts the merge of a symbol and the next one behind the heap. @returns false if there is none
  bool consider(std::string_view text, std::uint32_t at);
  void merge_all(std::string_view text);

  const token_table& tokens_;
  std::span<const float> scores_;
  std::vector<symbol> symbols_;
  std::vector<candidate> heap_;
};

} // namespace godwit
