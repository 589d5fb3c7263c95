#pragma once

#include "services/journal/commit_queue.hpp"
#include "services/journal/stored_journal.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace godwit {

/// What engines with group commit have in common: the calls that write, which go through one queue, the
/// sessions that were found damaged, and what is counted. An engine reads, and writes what the queue gives
/// it.
class queued_journal : public stored_journal {
 public:
  result<sequence_number> open(const session_id& session, const tenant_id& tenant, const node_name& owner,
    std::vector<journal_record> records, bool running) final;
  void append(append_request request, appended done) final;
  result<journal_head> claim(
    const session_id& session, epoch_t expected, const node_name& owner, const journal_record& claimed) final;
  void begin_claim(const session_id& session, epoch_t expected, const node_name& owner,
    const journal_record& claimed, claimed_head done) final;
  result<void> erase(const session_id& session) final;

  const journal_counters& counters() const final { return counters_; }

 protected:
  /// @param observer may be null
  explicit queued_journal(std::shared_ptr<journal_observer> observer) : observer_(std::move(observer)) {}

  /// Where changes wait. Its threads use this object, so the engine ends it first.
  virtual commit_queue& queue() = 0;

  /// Makes the writing thread look whether it can write again.
  void nudge();
  void warn(std::string_view text) const;

  /// Remembers damage: what comes back is what the caller is told.
  error judge(const session_id& session, const error& failure);
  bool is_quarantined(const session_id& session) const;
  /// Marks the sessions of a list that were found damaged since the start.
  void mark_quarantined(std::vector<journal_head>& heads) const;

  /// After a batch was written, on the writing thread: counts it, and lets go of erased sessions.
  void settle(
    const std::vector<const write_request*>& batch, const std::vector<result<journal_head>>& verdicts);

  journal_counters counters_;

 private:
  result<journal_head> wait_for(write_request request);

  const std::shared_ptr<journal_observer> observer_;
  std::atomic<bool> nudged_{false}; ///< one such request waits already
  mutable std::mutex mutex_;        ///< of the next
  std::set<session_id> quarantined_;
};

} // namespace godwit
