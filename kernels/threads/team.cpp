#include "kernels/threads/team.hpp"

#include "messages/check.hpp"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace godwit {

namespace {

/// Tells the core that this is a spin loop.
void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Loads before a waiter sleeps: some 50 microseconds. None when threads outnumber the cores, since the one
/// that is waited for may need the core of the one that waits.
std::uint32_t spins_for(std::uint32_t threads) {
  return threads <= std::thread::hardware_concurrency() ? 2000 : 0;
}

} // namespace

void worker::sync() {
  owner_->sync();
}

std::uint32_t worker::take() {
  return owner_->next_.fetch_add(1, std::memory_order_relaxed);
}

item_range worker::share(std::size_t items, std::size_t granule) const {
  const std::size_t grains = (items + granule - 1) / granule;
  const auto cut = [&](std::size_t thread) { return std::min(items, grains * thread / count_ * granule); };
  return {cut(index_), cut(std::size_t{index_} + 1)};
}

team::team(std::uint32_t threads) : size_{threads}, spins_{spins_for(threads)} {
  GODWIT_CHECK(threads >= 1);
  threads_.reserve(threads - 1);
  for (std::uint32_t index = 1; index < threads; ++index) {
    threads_.emplace_back([this, index] { serve(index); });
  }
}

team::~team() {
  stopping_ = true;
  jobs_.fetch_add(1, std::memory_order_release);
  jobs_.notify_all();
  for (auto& thread : threads_) {
    thread.join();
  }
}

void team::run_erased(function job, void* context) {
  job_ = job;
  context_ = context;
  next_.store(0, std::memory_order_relaxed);
  if (size_ > 1) {
    jobs_.fetch_add(1, std::memory_order_release);
    jobs_.notify_all();
  }
  worker self{*this, 0, size_};
  job(context, self);
  sync();
}

void team::serve(std::uint32_t index) {
  worker self{*this, index, size_};
  for (std::uint32_t seen = 0;; ++seen) {
    await_change(jobs_, seen);
    if (stopping_) {
      return;
    }
    job_(context_, self);
    sync();
  }
}

void team::sync() {
  if (size_ == 1) {
    next_.store(0, std::memory_order_relaxed);
    return;
  }
  const std::uint32_t round = round_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    // The last one resets the counters before it lets the others go.
    arrived_.store(0, std::memory_order_relaxed);
    next_.store(0, std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
  } else {
    await_change(round_, round);
  }
}

void team::await_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) const {
  for (std::uint32_t i = 0; i < spins_; ++i) {
    if (value.load(std::memory_order_acquire) != old) {
      return;
    }
    relax();
  }
  while (value.load(std::memory_order_acquire) == old) {
    value.wait(old, std::memory_order_acquire);
  }
}

} // namespace godwit
