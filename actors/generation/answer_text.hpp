#pragma once

#include "actors/tokenizer/token_text.hpp"

#include <memory>
#include <string>
#include <vector>

namespace godwit {

/// The visible text of an answer as a function of its tokens: whole UTF-8 characters only, control tokens
/// left out, and ended before the first stop string. Bytes that are no character become U+FFFD, one for each
/// maximal subpart as decoders have it. Text that could still become a stop string is held back.
///
/// Of stop strings that overlap the one counts that is complete first, and of those that end together the
/// longest. So the whole text depends only on the tokens' bytes, not on how they are cut into tokens, and a
/// restart rebuilds the state from the journal.
class answer_text {
 public:
  /// @param stops empty ones and those that are not UTF-8 are ignored: they stand in no text
  answer_text(std::shared_ptr<const token_text> vocabulary, std::vector<std::string> stops);

  /// Takes the next token. @returns the text that became certain, perhaps empty; nothing once stopped()
  /// @pre token below the vocabulary's size
  std::string push(token_id token);

  /// No token follows. @returns what was held back; an incomplete UTF-8 character becomes U+FFFD
  std::string finish();

  /// True once a stop string was found; the text ends before it, and tokens after it do not count.
  bool stopped() const { return stopped_; }

 private:
  void decode(bool last);
  std::string take_certain(bool last);

  std::shared_ptr<const token_text> vocabulary_;
  std::vector<std::string> stops_;
  std::string held_;  ///< characters not shown yet
  std::string bytes_; ///< bytes behind them that are no character yet
  bool stopped_ = false;
};

} // namespace godwit
