#pragma once

#include "services/http/exchange.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace godwit::http::test {

/// A handler made of a function.
class scripted_handler final : public handler {
 public:
  using script = std::function<void(std::shared_ptr<exchange>)>;
  explicit scripted_handler(script run) : run_(std::move(run)) {}
  void handle(std::shared_ptr<exchange> call) override { run_(std::move(call)); }

 private:
  script run_;
};

/// A value that one thread waits for and another sets.
template <class T>
class box {
 public:
  void put(T value) {
    const std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  /// The next value, in the order in which they were put.
  T take() {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, std::chrono::seconds(20), [&] { return !values_.empty(); }));
    T out = std::move(values_.front());
    values_.erase(values_.begin());
    return out;
  }
  bool empty() {
    const std::lock_guard lock(mutex_);
    return values_.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<T> values_;
};

} // namespace godwit::http::test
