#pragma once

#include "actors/tokenizer/token_text.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace godwit {

/// The visible text of an answer as a function of its tokens: whole UTF-8 characters only, control tokens
/// left out, and ended before the first stop string. Text that could still become a stop string is held back.
/// Feeding the same tokens in other groups gives the same whole text, so a restart rebuilds the state from
/// the journal.
class answer_text {
 public:
  answer_text(std::shared_ptr<const token_text> vocabulary, std::vector<std::string> stops);

  /// Takes the next token. @returns the text that became certain, perhaps empty; nothing once stopped()
  std::string push(token_id token);

  /// No token follows. @returns what was held back; an incomplete UTF-8 character becomes U+FFFD
  std::string finish();

  /// True once a stop string was found; the text ends before it, and tokens after it do not count.
  bool stopped() const { return stopped_; }

 private:
  std::string certain(bool last);

  std::shared_ptr<const token_text> vocabulary_;
  std::vector<std::string> stops_;
  std::string held_; ///< bytes not shown yet
  bool stopped_ = false;
};

} // namespace godwit
