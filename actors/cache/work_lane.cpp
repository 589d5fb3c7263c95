#include "actors/cache/work_lane.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace godwit {
namespace {

class thread_lane final : public work_lane {
 public:
  explicit thread_lane(std::size_t most) : most_(most), thread_([this] { run(); }) {}

  ~thread_lane() override {
    std::deque<job> dropped;
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      dropped.swap(jobs_);
    }
    wake_.notify_all();
    thread_.join();
  }

  bool submit(job what, bool first) override {
    {
      const std::lock_guard lock(mutex_);
      if (ended_ || jobs_.size() >= most_)
        return false;
      if (first)
        jobs_.push_front(std::move(what));
      else
        jobs_.push_back(std::move(what));
    }
    wake_.notify_one();
    return true;
  }

  std::chrono::nanoseconds busy() const override {
    const std::lock_guard lock(mutex_);
    return since_ ? std::chrono::steady_clock::now() - *since_ : std::chrono::nanoseconds(0);
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return ended_ || !jobs_.empty(); });
      if (ended_)
        return;
      auto next = std::move(jobs_.front());
      jobs_.pop_front();
      since_ = std::chrono::steady_clock::now();
      lock.unlock();
      next();
      next = nullptr;
      lock.lock();
      since_.reset();
    }
  }

  const std::size_t most_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<job> jobs_;
  std::optional<std::chrono::steady_clock::time_point> since_;
  bool ended_ = false;
  std::thread thread_; ///< last: it uses the others
};

class same_place final : public work_lane {
 public:
  bool submit(job what, bool /*first*/) override {
    what();
    return true;
  }
  std::chrono::nanoseconds busy() const override { return std::chrono::nanoseconds(0); }
};

} // namespace

std::unique_ptr<work_lane> threaded_lane(std::size_t most) {
  return std::make_unique<thread_lane>(most);
}

std::unique_ptr<work_lane> immediate_lane() {
  return std::make_unique<same_place>();
}

} // namespace godwit
