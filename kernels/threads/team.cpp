#include "kernels/threads/team.hpp"

#include "messages/check.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>

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

constexpr std::uint32_t one_job = 1U << 11;
static_assert(team::most_threads < one_job);

/// Time that this thread had a core.
std::chrono::nanoseconds core_time() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

} // namespace

void worker::sync() {
  owner_->sync(count_);
}

std::uint32_t worker::take() {
  return owner_->next_.fetch_add(1, std::memory_order_relaxed);
}

item_range worker::share(std::size_t items, std::size_t granule) const {
  const std::size_t grains = (items + granule - 1) / granule;
  const auto cut = [&](std::size_t thread) { return std::min(items, grains * thread / count_ * granule); };
  return {cut(index_), cut(std::size_t{index_} + 1)};
}

team::team(std::uint32_t threads, bool adapts, std::span<const numa_node> nodes)
  : size_{threads}, spins_{spins_for(threads)} {
  GODWIT_CHECK(threads >= 1 && threads <= most_threads);
  if (adapts)
    adapting_.emplace(threads);
  threads_.reserve(threads - 1);
  const auto places = nodes.size() > 1 ? spread_over(nodes, threads) : std::vector<std::size_t>{};
  for (std::uint32_t index = 1; index < threads; ++index) {
    auto cpus = places.empty() ? std::vector<std::uint32_t>{} : nodes[places[index]].cpus;
    threads_.emplace_back([this, index, cpus = std::move(cpus)] {
      if (!cpus.empty()) {
        stay_on(cpus); // if the system refuses, it runs anywhere
      }
      serve(index);
    });
  }
}

team::~team() {
  stopping_ = true;
  jobs_.fetch_add(one_job, std::memory_order_release);
  jobs_.notify_all();
  for (auto& thread : threads_) {
    thread.join();
  }
}

void team::run_erased(function job, void* context) {
  if (!adapting_) {
    run_with(size_, job, context);
    return;
  }
  const auto began = team_size::clock::now();
  const auto core = core_time();
  run_with(adapting_->now(), job, context);
  const auto ended = team_size::clock::now();
  adapting_->ran(ended - began, core_time() - core, ended);
}

void team::run_with(std::uint32_t threads, function job, void* context) {
  job_ = job;
  context_ = context;
  next_.store(0, std::memory_order_relaxed);
  if (threads > 1) {
    const auto jobs = jobs_.load(std::memory_order_relaxed) / one_job + 1;
    jobs_.store(jobs * one_job + threads, std::memory_order_release);
    jobs_.notify_all();
  }
  worker self{*this, 0, threads};
  job(context, self);
  sync(threads);
}

void team::serve(std::uint32_t index) {
  for (std::uint32_t seen = 0;;) {
    await_change(jobs_, seen);
    seen = jobs_.load(std::memory_order_acquire);
    if (stopping_) {
      return;
    }
    // A job that this thread is part of cannot end without it; others may have passed unseen.
    const auto threads = seen % one_job;
    if (index < threads) {
      worker self{*this, index, threads};
      job_(context_, self);
      sync(threads);
    }
  }
}

void team::sync(std::uint32_t threads) {
  if (threads == 1) {
    next_.store(0, std::memory_order_relaxed);
    return;
  }
  const std::uint32_t round = round_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads) {
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
