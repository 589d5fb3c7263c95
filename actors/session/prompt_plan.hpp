#pragma once

#include "actors/tokenizer/token_text.hpp"
#include "messages/ids.hpp"
#include "messages/trace_context.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace godwit {

struct chat_message {
  std::string role;
  std::string content;

  bool operator==(const chat_message&) const = default;
};

/// What a turn's prompt is made of: a conversation that ends with a user's message, and the tokens of the
/// turn before, which the prompt goes on from if it can.
struct prompt_task {
  std::uint64_t ticket = 0;
  std::vector<chat_message> messages;
  /// How many of the messages the turn before was prompted with; 0: there are no tokens to go on from.
  std::size_t before = 0;
  std::uint32_t prompt_length = 0; ///< of the turn before
  std::vector<token_id> answer;    ///< what it generated
  kept_trace trace;                ///< for which the prompt is made
};

/// A turn's prompt: the first `kept` tokens of the session's sequence so far, then `tokens`.
struct prepared_prompt {
  std::uint32_t kept = 0;
  std::vector<token_id> tokens;

  std::uint64_t length() const { return kept + tokens.size(); }
  bool operator==(const prepared_prompt&) const = default;
};

/// Which part of a prompt is tokens that exist already.
struct prompt_plan {
  bool reuse = false;            ///< false: the whole prompt is encoded
  std::size_t answer_tokens = 0; ///< of the turn before that stay as they are, beside all of its prompt
  std::string rest;              ///< the text behind them, to be encoded
};

/// Finds how a conversation's text goes on from the tokens of its last turn, so that tokens that were
/// generated are not made from text again: their cached blocks stay valid, and what the model wrote is what
/// it reads. The prompt of the turn before stays if its text is a prefix of the new text; of the answer's
/// tokens those stay whose bytes follow there. Control tokens count with their names, so that the
/// `<|im_end|>` which ended the answer and the one that the template prints behind it are one. Text that does
/// not match, such as the blanks that a template trims, or what came after a stop string, begins the rest.
/// @param before_text how the turn before was rendered; ends where its answer begins
/// @param now_text how the conversation is rendered now
prompt_plan plan_prompt(std::string_view before_text, std::span<const token_id> answer,
  const token_text& vocabulary, std::string_view now_text);

} // namespace godwit
