#pragma once

#include "actors/session/event_history.hpp"
#include "actors/session/journal_clerks.hpp"
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

  /// Has the journal asked; calls what that returns, at once or later.
  using consultant = std::function<void(journal_question)>;
  using opened = std::function<void(result<std::uint64_t>)>;

  /// @param machine whose events they are; lives longer
  event_streams(
    const session_machine& machine, event_history& history, std::size_t most, sender send, consultant consult)
    : machine_(machine), history_(history), most_(most), send_(std::move(send)),
      consult_(std::move(consult)) {}

  /// Opens a stream; nothing is sent before feed(). Calls back with its number, or with `invalid_argument`
  /// for a bad place or turn, `overloaded` for too many streams, the journal's errors: at once unless the
  /// journal has to be read.
  void open(schema::SubscribeRequest::Reader request, const opened& done);
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
    bool snapshot = false;      ///< is still to be sent
    sequence_number oldest = 0; ///< with `snapshot`: the first record that the journal still has
    bool past_only = false;
    sequence_number last = 0;        ///< with `past_only`: the record behind whose events it ends
    bool live = false;               ///< everything before now was sent
    event_maker order;               ///< if not live: behind the last record read
    std::vector<session_event> read; ///< if not live: made, to be sent
    std::vector<session_event> out;  ///< taken, to be sent when the journal has answered; within the credit
    bool reading = false;            ///< the journal was asked
    bool ended = false;
  };
  /// What the journal answered to a stream.
  struct page {
    event_maker order;
    result<std::vector<session_event>> events;
  };

  /// Behind which event a stream begins.
  result<event_place> place_of(const stream& to, schema::SubscribeRequest::Reader request) const;
  void open_snapshot(stream next, const opened& done);
  std::uint64_t add(stream next);
  /// Moves events from `read` to `out` as credit allows. @returns false if some had to stay
  bool take(stream& from, std::vector<session_event>& out);
  bool catch_up(stream& behind);
  void read_on(stream& behind);
  void read(std::uint64_t number, page found);
  bool over(const stream& one) const;
  void advance(stream& one);
  /// Forgets streams that have ended.
  void tidy();
  /// The last record whose events the stream is to have.
  sequence_number end_of(const stream& one) const;
  void send(stream& to, const error* why);

  const session_machine& machine_;
  event_history& history_;
  std::size_t most_;
  sender send_;
  consultant consult_;
  std::size_t opening_ = 0; ///< streams whose place is looked for
  int walking_ = 0;         ///< the streams are gone through: none is removed
  std::uint64_t numbers_ = 0;
  std::map<std::uint64_t, stream> streams_;
};

} // namespace godwit
