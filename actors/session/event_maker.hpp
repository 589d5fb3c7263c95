#pragma once

#include "actors/session/event_id.hpp"
#include "actors/session/journal.hpp"
#include "actors/session/session_event.hpp"
#include "messages/ids.hpp"
#include "messages/result.hpp"

#include <deque>
#include <string>
#include <vector>

namespace godwit {

/// Turns records into events, and keeps only what that needs: which turn runs and which wait, and who owns
/// the session. Small, so that copies of it mark places from which events can be made again.
class event_maker {
 public:
  /// Takes the next record. The same records give the same events, byte for byte.
  /// @returns `corrupt` if the record does not follow from those before it, `unsupported` for a kind of
  /// record that this version does not know; then nothing has changed
  result<std::vector<session_event>> apply(const placed_record& placed);

  /// The last record taken; 0 before the first.
  sequence_number sequence() const { return sequence_; }
  /// Where the last event stands; the end of the first record before there is one.
  event_place last_event() const { return last_event_; }
  /// 0 when no turn runs.
  turn_number running() const { return running_; }
  /// Accepted turns that have not started, in the order in which they will.
  const std::deque<turn_number>& waiting() const { return waiting_; }
  /// The last turn accepted; 0 before the first.
  turn_number last_turn() const { return last_turn_; }
  bool closed() const { return closed_; }

  /// Of the last `claimed` record.
  const std::string& node() const { return node_; }
  const std::string& incarnation() const { return incarnation_; }
  epoch_t epoch() const { return epoch_; }
  /// What the tokens of the journal's end were, or will be, made with.
  const std::string& fingerprint() const { return fingerprint_; }
  /// How often the running turn was taken over since its last token.
  unsigned attempts() const { return attempts_; }

 private:
  class writer;

  result<void> check(const placed_record& placed) const;
  void accept(schema::Accepted::Reader accepted, writer& out);
  void claim(schema::Claimed::Reader claimed, writer& out);
  void release(schema::Released::Reader released, writer& out);
  void end(schema::TurnEnded::Reader ended, writer& out);

  sequence_number sequence_ = 0;
  event_place last_event_{1, event_place::end};
  turn_number running_ = 0;
  turn_number last_turn_ = 0;
  std::deque<turn_number> waiting_;
  bool interrupts_ = false; ///< a new message goes before those that wait
  bool closed_ = false;
  std::string node_;
  std::string incarnation_;
  std::string fingerprint_;
  epoch_t epoch_ = 0;
  unsigned attempts_ = 0;
  std::string cause_; ///< of the last `cancelled`
};

/// The API's word for a cause.
std::string_view to_string(schema::EndCause cause);

} // namespace godwit
