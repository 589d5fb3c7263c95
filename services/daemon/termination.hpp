#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace godwit {

/// SIGTERM and SIGINT as something to wait for. Signals are taken by a thread of its own, never by a handler,
/// so that nothing has to be async-signal-safe. Make it before any other thread, since threads inherit which
/// signals are blocked; SIGPIPE is ignored from then on.
class termination {
 public:
  /// @param again called on the thread for the second signal, and for each after it
  explicit termination(std::function<void()> again);
  ~termination();
  termination(const termination&) = delete;
  termination& operator=(const termination&) = delete;

  /// True once a signal has come; waits for it so long.
  bool wait_for(std::chrono::milliseconds time);
  /// The same as a first signal. Any thread may call.
  void request();
  bool requested() { return wait_for(std::chrono::milliseconds(0)); }

 private:
  void watch();

  const std::function<void()> again_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool requested_ = false;
  int wakeup_ = -1; ///< eventfd that ends the thread
  int signals_ = -1;
  std::thread thread_;
};

} // namespace godwit
