#pragma once

#include "messages/ids.hpp"
#include "messages/letter.hpp"
#include "messages/result.hpp"
#include "messages/schemas/journal.capnp.h"

#include <functional>
#include <string>
#include <vector>

namespace godwit {

/// One record of a journal, in the form in which it is stored and read.
using journal_record = letter<schema::Record>;

/// A record with its place.
struct placed_record {
  sequence_number sequence = 0;
  epoch_t epoch = 0; ///< of its writer
  journal_record record;
};

/// The end of a session's journal.
struct journal_head {
  session_id session;
  tenant_id tenant;
  sequence_number sequence = 0; ///< of the last record
  epoch_t epoch = 0;            ///< of the owner
  node_name owner;
  bool running = false;     ///< a turn was running after the last record: to be resumed at start
  bool quarantined = false; ///< found damaged since the start; only in lists, where other fields may be empty
};

/// Records for the end of one session's journal.
struct append_request {
  session_id session;
  sequence_number expected = 0; ///< of the last record now; another one is `stale_sequence`
  epoch_t epoch = 0;            ///< of the writer; another than the head's is `stale_epoch`
  std::vector<journal_record> records;
  bool running = false; ///< for the head
};

/// Where sessions are kept. Appends are fenced: a record goes in only at the sequence and epoch that its
/// writer expects, so that there is one history whoever believes to own it. Every call has a time-out
/// (`deadline`).
///
/// After `io`, `resource_exhausted` or `deadline` from a call that writes, the records may be stored or not;
/// they never appear twice or in part. The writer reads the end of the journal, compares, and goes on from
/// there; `stale_sequence` then means to read again, since the write may have been under way still. While the
/// disk refuses, the end of a session so left is not known and answers `io` as well. Errors of all calls:
/// `not_found` for an unknown session, `quarantined` when a record in the middle is damaged, `io` and
/// `resource_exhausted` from the disk.
class journal {
 public:
  /// Told the sequence of the last record once all of them are durable. Called on one of the journal's own
  /// threads, or for a refusal before append() returns: do no work in it, and throw nothing.
  using appended = std::function<void(result<sequence_number>)>;

  virtual ~journal() = default;

  /// Creates a session with its first records, owned by `owner` in epoch 1. Durable when it returns. @returns
  /// `conflict` if the session exists
  virtual result<sequence_number> open(const session_id& session, const tenant_id& tenant,
    const node_name& owner, std::vector<journal_record> records, bool running) = 0;

  /// Appends all records of a request or none. Requests of many sessions share a sync. The callback is always
  /// called, once, also when the journal is being closed. @returns to the callback `stale_sequence`,
  /// `stale_epoch`, `too_large` (a record over max_record_bytes), `overloaded` when too much waits
  virtual void append(append_request request, appended done) = 0;

  /// Takes the session over: appends `claimed` and raises the epoch by one, if the epoch is still the
  /// expected one.
  /// @returns the new head, or `stale_epoch`
  virtual result<journal_head> claim(
    const session_id& session, epoch_t expected, const node_name& owner, const journal_record& claimed) = 0;

  /// Told the new head, as claim() returns it. Called once, on one of the journal's own threads or before
  /// begin_claim() returns: do no work in it, and throw nothing.
  using claimed_head = std::function<void(result<journal_head>)>;

  /// The same without waiting for it. An engine whose claims wait for anything has its own; this one is for
  /// those that answer at once.
  virtual void begin_claim(const session_id& session, epoch_t expected, const node_name& owner,
    const journal_record& claimed, claimed_head done) {
    done(claim(session, expected, owner, claimed));
  }

  virtual result<journal_head> head(const session_id& session) = 0;

  /// At most `limit` records from the sequence `from` on, in order, without gaps; none behind the end.
  virtual result<std::vector<placed_record>> read(
    const session_id& session, sequence_number from, std::size_t limit) = 0;

  /// Removes a session with all of its records, a quarantined one too.
  virtual result<void> erase(const session_id& session) = 0;

  /// Heads in the order of session ids, after `after` (empty: from the start).
  virtual result<std::vector<journal_head>> list(const session_id& after, std::size_t limit) = 0;

  static constexpr std::size_t max_record_bytes = std::size_t{1} << 20;
};

} // namespace godwit
