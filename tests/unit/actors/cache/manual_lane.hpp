#pragma once

#include "actors/cache/tiered_cache.hpp"

#include <deque>
#include <memory>

namespace godwit::test {

/// Jobs that are done when a test says so.
struct job_list {
  std::deque<work_lane::job> jobs;
  std::size_t most = 1000;
  std::chrono::nanoseconds busy{0};

  bool run_one() {
    if (jobs.empty())
      return false;
    const auto job = std::move(jobs.front());
    jobs.pop_front();
    job();
    return true;
  }
};

class manual_lane final : public work_lane {
 public:
  explicit manual_lane(std::shared_ptr<job_list> list) : list_(std::move(list)) {}
  bool submit(job what, bool first) override {
    if (list_->jobs.size() >= list_->most)
      return false;
    if (first)
      list_->jobs.push_front(std::move(what));
    else
      list_->jobs.push_back(std::move(what));
    return true;
  }
  std::chrono::nanoseconds busy() const override { return list_->busy; }

 private:
  std::shared_ptr<job_list> list_;
};

} // namespace godwit::test
