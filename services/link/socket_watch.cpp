#include "services/link/socket_watch.hpp"

#include "messages/check.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>

namespace godwit::link::detail {

namespace {

/// Told of by one wait.
constexpr int at_once = 64;

} // namespace

socket_watch::socket_watch() : descriptor_(::epoll_create1(EPOLL_CLOEXEC)) {
  GODWIT_CHECK(descriptor_ >= 0);
}

socket_watch::~socket_watch() {
  ::close(descriptor_);
}

bool socket_watch::add(int descriptor, mark which) {
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  wanted.data.u64 = which;
  return ::epoll_ctl(descriptor_, EPOLL_CTL_ADD, descriptor, &wanted) == 0;
}

void socket_watch::remove(int descriptor) {
  (void)::epoll_ctl(descriptor_, EPOLL_CTL_DEL, descriptor, nullptr);
}

std::span<const socket_watch::mark> socket_watch::wait(std::chrono::milliseconds time) {
  std::array<epoll_event, at_once> found{};
  const auto most = std::chrono::milliseconds(std::numeric_limits<int>::max());
  const auto count = ::epoll_wait(descriptor_, found.data(), at_once,
    static_cast<int>(std::clamp(time, std::chrono::milliseconds(0), most).count()));
  ready_.clear();
  for (int i = 0; i < count; ++i)
    ready_.push_back(mark{found[static_cast<std::size_t>(i)].data.u64}); // a copy: the system packs its words
  return ready_;
}

} // namespace godwit::link::detail
