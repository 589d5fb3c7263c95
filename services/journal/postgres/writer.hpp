#pragma once

#include "services/journal/metrics.hpp"
#include "services/journal/postgres/batch.hpp"
#include "services/postgres/primary.hpp"

#include <array>
#include <functional>
#include <mutex>
#include <set>
#include <string>

namespace godwit::postgres {

struct writer_options {
  std::chrono::milliseconds deadline{10'000}; ///< for one group of requests
  std::chrono::milliseconds first_retry{50};  ///< after a server was not found; doubles each time
  std::chrono::milliseconds last_retry{1'000};
  std::chrono::milliseconds suspicion{1'500}; ///< an answer that takes longer is asked after
};

/// Writes groups of requests, one after another, and finds out what became of them when a connection ends in
/// between. Used by one thread, except for what says otherwise.
class writer {
 public:
  writer(writer_options options, primary_finder& servers, const address& of, journal_counters& counters,
    std::function<void(std::string_view)> warn, const std::atomic<bool>& closing);

  /// Takes over a connection that was made at start.
  void begin(primary first);

  /// Durably, or with the reason why not. Takes no longer than the deadline.
  std::vector<result<journal_head>> write(
    const std::vector<const write_request*>& batch, const write_batch::is_quarantined& quarantined);

  /// Any thread: whether what the database shows of the session may not last, or may change without anybody
  /// writing, since the outcome of an earlier write is not known.
  bool unsure(const session_id& session) const;
  /// Any thread: why nothing can be written now; empty: it can.
  std::string trouble() const;

 private:
  bool ready(const patience& how);
  bool connect(const patience& how);
  bool settle(const patience& how);
  outcome await(const patience& how);
  bool still_at_work(const patience& how);
  void lose(const outcome& how);
  void stall(std::string why);
  void recovered();
  bool transact(write_batch& work, const plan& step, const patience& how);
  bool refused(write_batch& work, const plan& step, const outcome& why);
  void doubt(const std::vector<session_id>& sessions);
  void next_mark();
  void say(std::string text);

  const writer_options options_;
  primary_finder& servers_;
  const address& address_;
  journal_counters& counters_;
  const std::function<void(std::string_view)> warn_;
  const std::atomic<bool>& closing_;

  std::optional<primary> now_;
  bool in_flight_ = false; ///< an earlier transaction has no answer yet
  bool dirty_ = false;     ///< outcomes are unknown: settle before anything else
  std::chrono::milliseconds pause_{0};
  clock::time_point next_attempt_;
  std::string promise_;     ///< the last one that was told
  std::string last_reason_; ///< for not finding a server, so that it is told once
  std::size_t tries_ = 0;   ///< of a transaction that gave way to another
  std::string mark_;
  std::uint64_t marks_ = 0;
  error failure_{errc::io, "no database server answers", "", ""};

  mutable std::mutex mutex_; ///< of the next two
  std::set<session_id> unsure_;
  std::string trouble_;
};

} // namespace godwit::postgres
