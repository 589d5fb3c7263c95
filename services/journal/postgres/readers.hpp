#pragma once

#include "services/journal/postgres/schema.hpp"
#include "services/postgres/primary.hpp"

#include "actors/session/journal.hpp"

#include <condition_variable>
#include <mutex>
#include <vector>

namespace godwit::postgres {

/// Reads of heads and records, on the threads of their callers, over a few connections of their own to the
/// server that takes writes: others may be behind. Thread-safe.
class readers {
 public:
  /// @param most connections at the same time
  readers(primary_finder& servers, const address& of, std::chrono::milliseconds deadline, std::size_t most,
    const std::atomic<bool>& closing)
    : servers_(servers), address_(of), deadline_(deadline), most_(most), closing_(closing) {}

  // Errors of all: `deadline`, `io`, and `corrupt` for what does not check.
  result<std::optional<journal_head>> head(const session_id& session);
  /// Also `not_found`.
  result<std::vector<placed_record>> read(const session_id& session, sequence_number from, std::size_t limit);
  /// A head that does not check has the session's name and nothing else, and `quarantined`.
  result<std::vector<journal_head>> list(const session_id& after, std::size_t limit);

 private:
  result<rows> ask(query what, std::vector<parameter> parameters);
  result<primary> take(const patience& how, bool fresh);
  result<primary> made_sure(primary one, const patience& how);
  void give_back(primary one);
  void drop();

  primary_finder& servers_;
  const address& address_;
  const std::chrono::milliseconds deadline_;
  const std::size_t most_;
  const std::atomic<bool>& closing_;

  std::mutex mutex_;
  std::condition_variable free_;
  std::vector<primary> idle_;
  std::vector<primary> waiting_; ///< see made_sure()
  std::size_t made_ = 0;         ///< idle, waiting and in use
  clock::time_point down_until_; ///< no server was found a moment ago
};

} // namespace godwit::postgres
