#pragma once

#include "actors/session/event_history.hpp"
#include "actors/session/session_machine.hpp"
#include "messages/letter.hpp"
#include "messages/result.hpp"
#include "messages/schemas/session.capnp.h"

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace godwit {

/// Who listens to a session, and how far each has come. A stream that is at the end of the journal gets new
/// events as they are committed; one that has no credit falls behind and later reads from the journal, so
/// that a slow client costs no memory.
class event_streams {
 public:
  /// What a subscriber can have at most, and so the events of a batch.
  static constexpr std::uint32_t most_credit = 1024;

  /// Takes a batch to its subscriber.
  using sender = std::function<void(std::uint64_t subscription, letter<schema::EventBatch>)>;

  /// @param machine whose events they are; lives longer
  event_streams(const session_machine& machine, event_history& history, std::size_t most, sender send)
    : machine_(machine), history_(history), most_(most), send_(std::move(send)) {}

  /// Opens a stream; nothing is sent before feed().
  /// @returns its number; `invalid_argument` for a bad place or turn, `overloaded` for too many streams
  result<std::uint64_t> open(schema::SubscribeRequest::Reader request);
  /// Sends what its credit allows.
  void feed(std::uint64_t subscription);
  void grant(std::uint64_t subscription, std::uint32_t events);
  /// @returns the turn to cancel, because its client has left and its message said so; or 0
  turn_number drop(std::uint64_t subscription, bool client_left);

  /// New events, of records that the machine has applied.
  void committed(const std::vector<session_event>& events);
  /// Ends all streams with an error.
  void fail_all(const error& why);

  std::size_t size() const { return streams_.size(); }

 private:
  struct stream {
    std::uint64_t number = 0;
    std::uint32_t credit = 0;
    turn_number only = 0;
    bool snapshot = false; ///< is still to be sent
    bool past_only = false;
    sequence_number last = 0;        ///< with `past_only`: the record behind whose events it ends
    bool live = false;               ///< everything before now was sent
    event_maker order;               ///< if not live: behind the last record read
    std::vector<session_event> read; ///< if not live: made, to be sent
    bool ended = false;
  };

  result<void> place(stream& to, schema::SubscribeRequest::Reader request);
  /// Moves events from `read` to `out` as credit allows. @returns false if some had to stay
  bool take(stream& from, std::vector<session_event>& out);
  result<void> catch_up(stream& behind, std::vector<session_event>& out);
  bool over(const stream& one) const;
  void advance(stream& one);
  /// The last record whose events the stream is to have.
  sequence_number end_of(const stream& one) const;
  void send(stream& to, const std::vector<session_event>& events, const error* why);

  const session_machine& machine_;
  event_history& history_;
  std::size_t most_;
  sender send_;
  std::uint64_t numbers_ = 0;
  std::map<std::uint64_t, stream> streams_;
};

} // namespace godwit
