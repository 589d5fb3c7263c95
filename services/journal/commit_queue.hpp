#pragma once

#include "actors/session/journal.hpp"
#include "services/journal/metrics.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

namespace godwit {

/// A change of one session's journal.
struct write_request {
  /// `nothing` only makes the store look whether it can write again.
  enum class change { nothing, append, open, claim, erase };

  change what = change::append;
  session_id session;
  tenant_id tenant;             ///< open
  node_name owner;              ///< open, claim
  sequence_number expected = 0; ///< append
  epoch_t epoch = 0;            ///< append, claim: the head's now
  std::vector<journal_record> records;
  bool running = false;  ///< append, open
  std::size_t bytes = 0; ///< of the records
};

/// Group commit: while one batch is being written and synced by the only writing thread, the next one
/// gathers. Bounded, and every request is answered once: with the store's verdict, or by its deadline. Knows
/// no store.
class commit_queue {
 public:
  struct limits {
    std::size_t requests = 16'384;                  ///< that may wait
    std::size_t bytes = std::size_t{64} << 20;      ///< of records that may wait; one request may be larger
    std::size_t batch_bytes = std::size_t{4} << 20; ///< of one batch; one request may be larger
    std::chrono::milliseconds deadline{10'000};     ///< for the answer
  };

  /// The session's head after the change. Called on a thread of the queue: do no work in it, and do not
  /// throw.
  using answered = std::function<void(result<journal_head>)>;

  /// Writes a batch, in order, durably. @returns a verdict for each of its requests
  using commit =
    std::function<std::vector<result<journal_head>>(const std::vector<const write_request*>& batch)>;

  commit_queue(limits bounds, commit write, journal_counters& counters, journal_observer* observer);
  /// Writes what waits, then ends. New requests are answered `unavailable` meanwhile.
  ~commit_queue();

  commit_queue(const commit_queue&) = delete;
  commit_queue& operator=(const commit_queue&) = delete;

  /// Refusals (`overloaded`, `unavailable`) are answered before it returns, on the caller's thread.
  /// A request that is answered `deadline` was not written if the message does not say that this is unknown.
  void push(write_request request, answered done);

 private:
  using clock = std::chrono::steady_clock;

  struct ticket {
    write_request request;
    answered done; ///< empty once it was answered
    clock::time_point arrived;
  };

  void write_loop();
  void watch_loop();
  std::vector<const write_request*> take_batch();
  void count_waiting();

  limits bounds_;
  commit write_;
  journal_counters& counters_;
  journal_observer* observer_;

  std::mutex mutex_;
  std::condition_variable arrival_;
  std::condition_variable end_;
  std::list<ticket> waiting_;
  std::list<ticket> running_; ///< being written; requests are read by the writing thread without the lock
  std::size_t waiting_bytes_ = 0;
  bool closing_ = false; ///< no new requests
  bool ended_ = false;   ///< the writing thread is done

  std::thread writer_;
  std::thread watcher_; ///< answers what is over its deadline, also while a sync hangs
};

} // namespace godwit
