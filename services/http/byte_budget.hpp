#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace godwit::http {

/// Bytes that many parties may hold together. Thread-safe.
class byte_budget {
 public:
  explicit byte_budget(std::size_t limit) : limit_(limit) {}

  /// False, and nothing taken, if that is more than what is left.
  bool take(std::size_t bytes) {
    auto used = used_.load(std::memory_order_relaxed);
    do {
      if (bytes > limit_ - used)
        return false;
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    return true;
  }
  void give(std::size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  std::size_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  const std::size_t limit_;
  std::atomic<std::size_t> used_{0};
};

/// One party's share; returned when it goes.
class byte_share {
 public:
  byte_share() = default;
  explicit byte_share(std::shared_ptr<byte_budget> budget) : budget_(std::move(budget)) {}
  byte_share(byte_share&& other) noexcept
    : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)) {}
  byte_share& operator=(byte_share&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~byte_share() {
    if (budget_)
      budget_->give(bytes_);
  }

  /// Makes the share at least `bytes` large. False, and nothing changed, if the budget does not allow it.
  bool grow_to(std::size_t bytes) {
    if (bytes <= bytes_)
      return true;
    if (!budget_->take(bytes - bytes_))
      return false;
    bytes_ = bytes;
    return true;
  }

 private:
  std::shared_ptr<byte_budget> budget_;
  std::size_t bytes_ = 0;
};

} // namespace godwit::http
