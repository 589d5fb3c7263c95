#pragma once

#include "messages/check.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace godwit::link::detail {

/// A descriptor that ends a poll.
class waker {
 public:
  waker() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { GODWIT_CHECK(descriptor_ >= 0); }
  ~waker() { ::close(descriptor_); }
  waker(const waker&) = delete;
  waker& operator=(const waker&) = delete;
  int descriptor() const { return descriptor_; }
  void wake() const {
    const std::uint64_t one = 1;
    (void)!::write(descriptor_, &one, sizeof one);
  }
  void settle() const {
    std::uint64_t count = 0;
    (void)!::read(descriptor_, &count, sizeof count);
  }

 private:
  int descriptor_;
};

} // namespace godwit::link::detail
