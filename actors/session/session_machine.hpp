#pragma once

#include "actors/session/event_maker.hpp"
#include "actors/session/journal.hpp"
#include "actors/session/session_event.hpp"
#include "actors/session/session_records.hpp"
#include "messages/ids.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace godwit {

/// One turn as its records tell it.
struct session_turn {
  enum class state { waiting, running, completed, failed, cancelled };

  turn_number turn = 0;
  state now = state::waiting;
  sequence_number accepted = 0; ///< its `accepted` record
  sequence_number ended = 0;    ///< its `turn_ended` record; 0 before
  bool cancel_on_disconnect = false;
  bool prompted = false; ///< its prompt is complete: it is part of the conversation
  std::string message;
  std::string answer; ///< so far
  token_usage usage;
};

/// The word for a turn's state: queued, running, completed, failed, cancelled.
std::string_view to_string(session_turn::state state);

/// What a client's key was used for.
struct idempotent_call {
  std::string body_hash;
  turn_number turn = 0;
};

/// A session: the fold of its journal's records, and nothing else. No clock, no I/O, no actor.
class session_machine {
 public:
  explicit session_machine(session_id id) : id_(std::move(id)), ids_(id_) {}

  /// Takes the next record. @returns the events that it makes, always the same for the same records; or
  /// `corrupt` or `unsupported`, then nothing has changed
  result<std::vector<session_event>> apply(const placed_record& placed);

  const session_id& id() const { return id_; }
  const event_ids& ids() const { return ids_; }
  /// The small part of the state: running and waiting turns, owner, sequence.
  const event_maker& order() const { return order_; }
  sequence_number sequence() const { return order_.sequence(); }
  /// 0 when no turn runs.
  turn_number running() const { return order_.running(); }
  bool closed() const { return order_.closed(); }

  /// From the `opened` record, which must have been applied.
  schema::SessionSettings::Reader settings() const;
  std::int64_t created_at() const { return created_at_; } ///< milliseconds since 1970
  /// Milliseconds since 1970; 0 is never.
  std::int64_t expires_at() const;
  const std::string& parent() const { return parent_; } ///< empty unless this is a fork
  sequence_number forked_at() const { return forked_at_; }
  std::int64_t closed_at() const { return closed_at_; }

  const std::vector<session_turn>& turns() const { return turns_; }
  /// nullptr if there is no such turn.
  const session_turn* find(turn_number turn) const;
  const idempotent_call* find_key(const std::string& key) const;
  /// Turns whose prompt is complete, in the order in which they ran.
  const std::vector<turn_number>& conversation() const { return conversation_; }
  token_usage usage() const { return usage_; } ///< of all turns that ended

  /// Prompt and answer of the last turn that was prompted, as far as committed.
  const std::vector<token_id>& tokens() const { return tokens_; }
  /// Tokens of the prompt in tokens().
  std::uint32_t prompt_length() const { return prompt_length_; }
  /// False if tokens() were made with another model than the owner's of now.
  bool tokens_are_ours() const { return tokens_fingerprint_ == order_.fingerprint(); }

 private:
  result<void> check(const journal_record& record) const;
  session_turn& turn(turn_number number) { return turns_[number - 1]; }
  void accept(sequence_number sequence, schema::Accepted::Reader accepted);
  void prompt(schema::Prompted::Reader prompted);
  void release(schema::Released::Reader released);
  void end(sequence_number sequence, schema::TurnEnded::Reader ended);

  session_id id_;
  event_ids ids_;
  event_maker order_;
  std::optional<journal_record> opened_;
  std::int64_t created_at_ = 0;
  std::int64_t closed_at_ = 0;
  std::string parent_;
  sequence_number forked_at_ = 0;
  std::vector<session_turn> turns_; ///< turn n at n - 1
  std::map<std::string, idempotent_call> keys_;
  std::vector<turn_number> conversation_;
  token_usage usage_;
  std::vector<token_id> tokens_;
  std::uint32_t prompt_length_ = 0;
  std::string tokens_fingerprint_;
};

} // namespace godwit
