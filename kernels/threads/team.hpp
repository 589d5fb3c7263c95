#pragma once

#include "kernels/threads/numa.hpp"
#include "kernels/threads/team_size.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace godwit {

class team;

/// A half-open range of item numbers.
struct item_range {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool empty() const { return begin == end; }
};

/// One thread's part in a job of a team. All threads of a job run the same code and meet at `sync`.
class worker {
 public:
  std::uint32_t index() const { return index_; }
  std::uint32_t count() const { return count_; }

  /// Waits until every thread of the job is here; what they wrote before is then visible to all.
  void sync();

  /// The next item number: 0, 1, … handed out once each between two syncs. For work of uneven cost.
  std::uint32_t take();

  /// This thread's contiguous part of `items`, cut at multiples of `granule`. For work of even cost.
  item_range share(std::size_t items, std::size_t granule = 1) const;

 private:
  friend class team;
  worker(team& owner, std::uint32_t index, std::uint32_t count)
    : owner_{&owner}, index_{index}, count_{count} {}

  team* owner_;
  std::uint32_t index_;
  std::uint32_t count_;
};

/// A fixed set of threads that run one job at a time together with their caller. Threads spin for some tens
/// of microseconds before they sleep, so that the many short parts of one step cost no system call; nothing
/// is allocated after construction. With one thread everything runs inline.
class team {
 public:
  /// @param threads from 1 to `most_threads`; the caller of `run` is one of them
  /// @param adapts whether jobs are run by fewer of them while the machine is too busy for all (team_size)
  /// @param nodes    of the machine: where there are several, all threads but the caller stay on theirs
  explicit team(std::uint32_t threads, bool adapts = false, std::span<const numa_node> nodes = numa_nodes());
  ~team();
  team(const team&) = delete;
  team& operator=(const team&) = delete;

  static constexpr std::uint32_t most_threads = 1024;

  std::uint32_t size() const { return size_; }

  /// Calls `job(worker&)` on all threads and returns when all of them are done. Jobs must not throw, and must
  /// not call `run` of the same team. One caller at a time.
  template <class Job>
  void run(Job&& job) {
    run_erased(
      [](void* context, worker& self) { (*static_cast<std::remove_reference_t<Job>*>(context))(self); },
      const_cast<void*>(static_cast<const void*>(std::addressof(job))));
  }

 private:
  friend class worker;
  using function = void (*)(void* context, worker& self);

  void run_erased(function job, void* context);
  void run_with(std::uint32_t threads, function job, void* context);
  void serve(std::uint32_t index);
  /// @param threads of the job; no member, since the next one may begin while some still leave the barrier
  void sync(std::uint32_t threads);
  void await_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) const;

  const std::uint32_t size_;
  const std::uint32_t spins_;
  function job_ = nullptr;
  void* context_ = nullptr;
  std::optional<team_size> adapting_;
  std::atomic<bool> stopping_{false};

  // Each counter on a cache line of its own: they are written by all threads.
  alignas(64) std::atomic<std::uint32_t> jobs_{
    0}; ///< jobs so far, and in the low bits the threads of the last; a change starts one
  alignas(64) std::atomic<std::uint32_t> arrived_{0}; ///< threads at the barrier
  alignas(64) std::atomic<std::uint32_t> round_{0};   ///< counts barriers; a change opens one
  alignas(64) std::atomic<std::uint32_t> next_{0};    ///< next item of `take`
  std::vector<std::thread> threads_;
};

} // namespace godwit
