#pragma once

#include "actors/generation/answer_text.hpp"
#include "actors/session/prompt_plan.hpp"
#include "actors/session/session_limits.hpp"
#include "actors/session/session_machine.hpp"
#include "actors/session/session_records.hpp"
#include "messages/letter.hpp"
#include "messages/result.hpp"
#include "messages/schemas/session.capnp.h"

#include <optional>
#include <span>
#include <vector>

namespace godwit {

// What a session decides: records to append, as functions of its state. Nothing here writes or sends.

using journal_records = std::vector<journal_record>;

/// The answer to a message that is in the journal already, under its key.
/// @returns nothing if the key is new or there is none; `unprocessable` if it stands for another body
result<std::optional<letter<schema::MessageAccepted>>> stored_answer(
  const session_machine& machine, schema::PostMessage::Reader post);

/// May a new message be accepted now?
/// @returns `conflict` (session_closed; turn_running under `reject`), or `overloaded` behind too many others
result<void> check_admission(const session_machine& machine, const session_limits& limits);

/// @returns `invalid_argument` with both numbers for a prompt that leaves no room for an answer
result<void> check_context(std::uint64_t prompt_tokens, std::uint32_t context);

/// Accepts a message. Under `interrupt` the running turn ends for it.
/// @param prompt of the new turn, when none runs
/// @param held text of the running turn's answer that was not certain yet
journal_records accept_message(const session_machine& machine, schema::PostMessage::Reader post,
  const prepared_prompt* prompt, const std::string& held, std::int64_t at);

/// What accept_message() is answered with once it is committed.
letter<schema::MessageAccepted> accepted_answer(
  turn_number turn, sequence_number sequence, const event_ids& ids, bool replayed);

/// Ends a turn that runs or waits.
journal_records cancel_turn(const session_machine& machine, turn_number turn, schema::EndCause cause,
  const std::string& held, std::int64_t at);

/// Ends the running turn, as `failed`.
journal_records fail_turn(
  const session_machine& machine, const error& failure, const std::string& held, std::int64_t at);

/// Ends every turn and the session.
journal_records close_session(
  const session_machine& machine, const std::string& cause, const std::string& held, std::int64_t at);

/// Tokens of the running turn that wait to be committed.
struct token_group {
  std::span<const sampled_token> tokens; ///< from the end of the machine's tokens on
  std::uint32_t cached = 0;              ///< of the prompt
  std::uint32_t host = 0;                ///< of these, from host memory
  std::uint32_t disk = 0;                ///< and from the cold tier
  /// "stop" or "length" if the generation ended behind the last of these tokens.
  std::string finish;
};

struct release_decision {
  journal_records records;
  std::size_t taken = 0; ///< tokens that the records hold; those behind a stop string are dropped
  bool ends = false;     ///< the turn ends here
  bool stopped = false;  ///< because of a stop string
  answer_text text;      ///< the answer's text behind the records
};

/// Releases tokens, up to a stop string.
release_decision release_tokens(
  const session_machine& machine, answer_text text, const token_group& group, std::int64_t at);

/// How the running turn ends without another token, as one that a crash kept from ending: by its last token,
/// by a stop string or by length. @returns nothing if tokens are missing
std::optional<release_decision> end_without_tokens(const session_machine& machine, answer_text text,
  const token_text& vocabulary, std::uint32_t context, std::int64_t at);

/// How many more tokens the running turn may generate.
std::uint32_t remaining_tokens(const session_machine& machine, std::uint32_t context);

/// The text of the running turn's answer as its tokens make it, to go on from.
answer_text running_answer(
  const session_machine& machine, const std::shared_ptr<const token_text>& vocabulary);

/// Whether a turn runs once these records are in.
bool runs_after(const session_machine& machine, const journal_records& records);

/// A turn as it is. @param turn 0 is the running one, or else the last
/// @returns `not_found` for a turn that never was
result<letter<schema::TurnState>> turn_state(const session_machine& machine, turn_number turn);

} // namespace godwit
