#pragma once

#include "actors/session/prompt_plan.hpp"
#include "actors/session/session_machine.hpp"
#include "messages/letter.hpp"
#include "messages/schemas/session.capnp.h"

#include <string>
#include <vector>

namespace godwit {

// How a session looks from outside: functions of its state.

/// Tokens of a session that each tier of the KV cache has.
struct session_kv {
  std::uint64_t device = 0;
  std::uint64_t host = 0;
  std::uint64_t disk = 0;
  bool suspended = false; ///< moved there since its last turn
};

/// @param oldest the first record that the journal still has; 0 if that is not known
/// @param kv as the cache says; without it only what a running turn has for sure is told
letter<schema::SessionInfo> session_info(
  const session_machine& machine, sequence_number oldest = 1, const session_kv* kv = nullptr);

/// The conversation with the running turn, in the order in which it was held: what the model has seen. Turns
/// that ended before they had a prompt are left out; waiting ones come at the end.
letter<schema::Transcript> session_transcript(const session_machine& machine);

/// What the model is asked with: the system's message, the turns that were prompted, and `next`.
std::vector<chat_message> conversation_messages(const session_machine& machine, const std::string& next);

/// The task of making the prompt that ends with the message `next`.
prompt_task next_prompt(const session_machine& machine, const std::string& next);

/// The `snapshot` event: the whole state but for what only the cache knows, at the place of the last event.
/// @param oldest the first record that the journal still has; 0 if that is not known
session_event session_snapshot(const session_machine& machine, sequence_number oldest);

} // namespace godwit
