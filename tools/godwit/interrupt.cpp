#include "tools/godwit/interrupt.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <memory>

#include <pthread.h>
#include <signal.h>

namespace godwit::cli {

namespace {

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  // How the destructor wakes the thread.
  sigaddset(&set, SIGUSR1);
  return set;
}

} // namespace

interrupt_watch::interrupt_watch() {
  const auto set = watched();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this] { watch(); });
}

interrupt_watch::~interrupt_watch() {
  pthread_kill(thread_.native_handle(), SIGUSR1);
  thread_.join();
  const auto set = watched();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void interrupt_watch::on_interrupt(std::function<void()> action) {
  const std::scoped_lock lock(mutex_);
  action_ = std::move(action);
}

void interrupt_watch::watch() {
  const auto set = watched();
  int signal = 0;
  const auto running = std::make_shared<std::atomic<bool>>(false);
  while (sigwait(&set, &signal) == 0 && signal == SIGINT) {
    const std::scoped_lock lock(mutex_);
    if (!action_)
      continue;
    if (running->exchange(true))
      std::_Exit(128 + SIGINT);
    std::thread([running, action = action_] {
      action();
      *running = false;
    }).detach();
  }
}

} // namespace godwit::cli
