#pragma once

#include "messages/catalogue.hpp"

#include <caf/typed_response_promise.hpp>

#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace godwit {

/// A number that an actor shows of itself.
using gauge = std::pair<const char*, double>;

/// An actor's answer to `status`.
letter<schema::ActorStatus> status_letter(
  const char* name, std::string_view state, std::string_view reason, std::span<const gauge> gauges);

letter<schema::Drained> drained_letter(std::uint32_t remaining);

/// Those who asked an actor to drain and wait for it.
class drain_waiters {
 public:
  using promise = caf::typed_response_promise<letter<schema::Drained>>;

  void add(promise waiter) {
    draining_ = true;
    waiters_.push_back(std::move(waiter));
  }
  bool draining() const { return draining_; }

  /// Answers everybody if nothing runs any more.
  void check(std::size_t running) {
    if (running > 0)
      return;
    for (auto& waiter : std::exchange(waiters_, {}))
      waiter.deliver(drained_letter(0));
  }

 private:
  bool draining_ = false;
  std::vector<promise> waiters_;
};

} // namespace godwit
