#pragma once

#include "messages/actor_error.hpp"
#include "messages/error.hpp"
#include "messages/result.hpp"

#include <caf/typed_response_promise.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

namespace godwit {

/// Calls of an actor that are answered later. Nobody is told of a promise that an actor forgets, so an actor
/// that ends refuses those that are left.
class open_calls {
 public:
  /// @param most more than so many are answered `overloaded`
  explicit open_calls(std::size_t most) : most_(most) {}
  open_calls(const open_calls&) = delete;
  open_calls& operator=(const open_calls&) = delete;

  /// What answers a call, once; empty if there are too many, and it was answered. Used by the actor only, and
  /// not after this object's life.
  template <class T>
  std::function<void(result<T>)> add(caf::typed_response_promise<T> promise) {
    auto answer = [promise](result<T> outcome) mutable {
      if (outcome)
        promise.deliver(std::move(*outcome));
      else
        promise.deliver(to_caf_error(outcome.error()));
    };
    if (calls_.size() >= most_) {
      answer(fail(errc::overloaded, "too many calls wait for this session"));
      return {};
    }
    const auto number = ++numbers_;
    calls_.emplace(number, [answer](const error& why) mutable { answer(tl::unexpected<error>(why)); });
    return [this, number, answer](result<T> outcome) mutable {
      if (calls_.erase(number) != 0)
        answer(std::move(outcome));
    };
  }

  /// Answers all that are open.
  void refuse(const error& why) {
    for (auto& [number, one] : std::exchange(calls_, {}))
      one(why);
  }

  std::size_t size() const { return calls_.size(); }

 private:
  std::size_t most_;
  std::uint64_t numbers_ = 0;
  std::map<std::uint64_t, std::function<void(const error&)>> calls_;
};

} // namespace godwit
