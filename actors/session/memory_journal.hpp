#pragma once

#include "actors/session/journal.hpp"

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

namespace godwit {

/// What a memory_journal keeps: outlives it as a disk outlives a process, so that a test can restart. To be
/// used by one journal at a time.
struct memory_disk {
  struct session {
    journal_head head;
    std::vector<placed_record> records;
    sequence_number damaged = 0; ///< this record no longer checks; 0 is none
    sequence_number oldest = 1;  ///< records before this one are not kept any more
  };
  std::map<session_id, session> sessions;
};

/// A journal without a disk, with the rules of the real ones. Tests decide when appends become durable and
/// which calls fail, so that what happens between the two is deterministic: unless hold() was called,
/// an append calls back before it returns, on the caller's thread. Thread-safe.
class memory_journal final : public journal {
 public:
  enum class call { open, append, claim, head, read, erase, list };

  /// What becomes of a call that was told to fail.
  enum class outcome {
    refused, ///< nothing was written
    stored,  ///< it was written and only the answer is a failure: the ambiguous case
  };

  explicit memory_journal(std::shared_ptr<memory_disk> disk = std::make_shared<memory_disk>());
  /// Appends that wait are answered `unavailable` and not written, as if the process had died before them.
  ~memory_journal() override;

  result<sequence_number> open(const session_id& session, const tenant_id& tenant, const node_name& owner,
    std::vector<journal_record> records, bool running) override;
  void append(append_request request, appended done) override;
  result<journal_head> claim(const session_id& session, epoch_t expected, const node_name& owner,
    const journal_record& claimed) override;
  result<journal_head> head(const session_id& session) override;
  result<std::vector<placed_record>> read(
    const session_id& session, sequence_number from, std::size_t limit) override;
  result<void> erase(const session_id& session) override;
  result<std::vector<journal_head>> list(const session_id& after, std::size_t limit) override;

  /// From now on appends wait, in order, for release(). Their fences are checked when they are released.
  /// Other calls do not wait: they come from elsewhere and overtake.
  void hold();
  /// Lets the oldest `count` waiting appends through and calls back. @returns how many there were
  std::size_t release(std::size_t count = static_cast<std::size_t>(-1));
  /// Ends hold() and lets everything through.
  void resume();
  /// Appends that wait for release().
  std::size_t waiting() const;

  /// The next `times` calls of this kind fail. Waiting appends use this up when they are released.
  void fail_next(call kind, error failure, std::size_t times = 1, outcome what = outcome::refused);

  /// From now on this record does not check: reading it quarantines the session.
  void damage(const session_id& session, sequence_number sequence);

  /// From now on the records before this one are gone.
  void forget(const session_id& session, sequence_number before);

 private:
  struct planned_failure {
    error failure;
    std::size_t times;
    outcome what;
  };
  struct waiting_append {
    append_request request;
    appended done;
  };

  std::optional<planned_failure> next_failure(call kind);
  result<memory_disk::session*> find(const session_id& session);
  result<sequence_number> commit(const append_request& request);

  mutable std::mutex mutex_;
  std::shared_ptr<memory_disk> disk_;
  std::set<session_id> quarantined_; ///< until the journal is opened again
  std::map<call, std::deque<planned_failure>> failures_;
  std::deque<waiting_append> waiting_;
  bool held_ = false;
};

} // namespace godwit
