#pragma once

#include <functional>
#include <mutex>
#include <thread>

namespace godwit::cli {

/// Turns Ctrl-C into a call while something runs. SIGINT is blocked for the life of this object and taken by
/// a thread of its own, so that no code runs in a signal handler.
class interrupt_watch {
 public:
  interrupt_watch();
  ~interrupt_watch();
  interrupt_watch(const interrupt_watch&) = delete;
  interrupt_watch& operator=(const interrupt_watch&) = delete;

  /// What Ctrl-C calls from now on, on a thread that may outlive this object; nothing if empty. Ctrl-C while
  /// the call of an earlier one has not returned ends the program with status 130: the node does not answer.
  void on_interrupt(std::function<void()> action);

 private:
  void watch();

  std::mutex mutex_;
  std::function<void()> action_;
  std::thread thread_;
};

} // namespace godwit::cli
