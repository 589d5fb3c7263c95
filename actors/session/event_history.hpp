#pragma once

#include "actors/session/event_maker.hpp"
#include "actors/session/journal.hpp"
#include "actors/session/session_event.hpp"
#include "messages/ids.hpp"
#include "messages/result.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace godwit {

/// Makes a session's past events again from its journal. A value that may go to another thread, since reading
/// may take long.
class event_pages {
 public:
  /// @param page records read at once
  event_pages(session_id session, std::size_t page) : session_(std::move(session)), page_(page) {}

  /// Where a reader stands that has read up to and with the event at `after`.
  struct place {
    event_maker order;                 ///< behind the last record that was read
    std::vector<session_event> events; ///< of that record, behind `after`
  };
  /// @param from behind a record before that place; as made, behind none
  /// @returns the journal's errors
  result<place> seek(journal& records, event_maker from, event_place after) const;

  /// The events of the next records, at most a page of them, up to the record `last`. Moves `order` behind
  /// them.
  result<std::vector<session_event>> next(journal& records, event_maker& order, sequence_number last) const;

  /// The first record that the journal still has. @returns the journal's errors, `gone` if it has none
  result<sequence_number> oldest(journal& records) const;

 private:
  session_id session_;
  std::size_t page_;
};

/// Where to begin to read a session's past events. Nothing of them is kept in memory but a few marks: copies
/// of the small state that events are made with, from which a reader starts near its place.
class event_history {
 public:
  /// @param page records read at once
  event_history(session_id session, std::size_t page) : pages_(std::move(session), page) {}

  /// To be told of the state behind each record, in order; keeps one now and then.
  void passed(const event_maker& order);

  /// The last mark before a place.
  event_maker before(event_place after) const;

  const event_pages& pages() const { return pages_; }
  std::size_t marks() const { return marks_.size(); }

 private:
  static constexpr std::size_t most_marks = 64;

  event_pages pages_;
  sequence_number stride_ = 256; ///< records from mark to mark; doubles when there are too many
  std::vector<event_maker> marks_;
};

} // namespace godwit
