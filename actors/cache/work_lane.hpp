#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace godwit {

/// Where work is done for somebody who does not wait for it, one thing after the other.
class work_lane {
 public:
  using job = std::function<void()>;

  virtual ~work_lane() = default;
  /// @param first before all that wait
  /// @returns false if too much waits: the job is dropped
  virtual bool submit(job what, bool first) = 0;
  /// How long the job that runs has been running; 0 if none runs.
  virtual std::chrono::nanoseconds busy() const = 0;
};

/// A lane with a thread of its own. Its end waits for the job that runs, and drops those that wait.
/// @param most jobs that may wait
std::unique_ptr<work_lane> threaded_lane(std::size_t most);

/// A lane without a thread, for tests on CAF's test scheduler: a job is done when submit() returns.
std::unique_ptr<work_lane> immediate_lane();

} // namespace godwit
