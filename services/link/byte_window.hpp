#pragma once

#include "services/link/waker.hpp"

#include <atomic>
#include <cstddef>

namespace godwit::link::detail {

/// Bytes that ZeroMQ has of one connection: lent by the link's thread, given back by ZeroMQ's when it has
/// sent them. ZeroMQ itself bounds messages only, which may be of any size.
class byte_window {
 public:
  byte_window(std::size_t most, const waker& wake) : most_(most), wake_(wake) {}

  /// @returns whether nothing may be lent now. Then the waker is told once half of it is back.
  bool full() {
    if (lent_.load(std::memory_order_relaxed) < most_)
      return false;
    // Whoever gives back sees that somebody waits, or this sees what was given back: both are in one order.
    waits_.store(true);
    return lent_.load() >= most_;
  }

  void lend(std::size_t bytes) { lent_.fetch_add(bytes, std::memory_order_relaxed); }

  /// On any thread.
  void give_back(std::size_t bytes) {
    if (lent_.fetch_sub(bytes) - bytes <= most_ / 2 && waits_.load() && waits_.exchange(false))
      wake_.wake();
  }

  std::size_t lent() const { return lent_.load(std::memory_order_relaxed); }

 private:
  const std::size_t most_;
  const waker& wake_;
  std::atomic<std::size_t> lent_{0};
  std::atomic<bool> waits_{false};
};

} // namespace godwit::link::detail
