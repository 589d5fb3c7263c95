#include "services/daemon/termination.hpp"

#include "messages/check.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace godwit {

namespace {

sigset_t handled() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

} // namespace

termination::termination(std::function<void()> again) : again_(std::move(again)) {
  std::signal(SIGPIPE, SIG_IGN);
  const auto set = handled();
  GODWIT_CHECK(::pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0);
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  wakeup_ = ::eventfd(0, EFD_CLOEXEC);
  GODWIT_CHECK(signals_ >= 0 && wakeup_ >= 0);
  thread_ = std::thread([this] { watch(); });
}

termination::~termination() {
  const std::uint64_t one = 1;
  GODWIT_CHECK(::write(wakeup_, &one, sizeof one) == sizeof one);
  thread_.join();
  ::close(wakeup_);
  ::close(signals_);
  const auto set = handled();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

bool termination::wait_for(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return requested_; });
}

void termination::request() {
  {
    const std::lock_guard lock(mutex_);
    requested_ = true;
  }
  changed_.notify_all();
}

void termination::watch() {
  for (;;) {
    std::array<pollfd, 2> waiting{pollfd{signals_, POLLIN, 0}, pollfd{wakeup_, POLLIN, 0}};
    if (::poll(waiting.data(), waiting.size(), -1) < 0)
      continue; // a signal that is not ours
    if (waiting[1].revents != 0)
      return;
    signalfd_siginfo taken{};
    while (::read(signals_, &taken, sizeof taken) == sizeof taken) {
      bool first = false;
      {
        const std::lock_guard lock(mutex_);
        first = !requested_;
        requested_ = true;
      }
      changed_.notify_all();
      if (!first)
        again_();
    }
  }
}

} // namespace godwit
