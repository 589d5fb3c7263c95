#pragma once

#include "services/link/actor_codec.hpp"
#include "services/link/receiver.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace godwit::link {

/// Requests of other nodes that local actors have not answered yet. Any thread may call.
class asked_requests {
 public:
  struct request {
    reply_token token;
    const signature_codec* signature = nullptr;
  };

  /// @returns the number under which the local actor is asked
  std::uint64_t add(request one) {
    const std::lock_guard lock(mutex_);
    const auto number = ++last_;
    numbers_.emplace(key_of(one.token), number);
    all_.emplace(number, std::move(one));
    return number;
  }

  /// The request that was answered; nothing if nobody waits any more.
  std::optional<request> take(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(number);
    if (found == all_.end())
      return std::nullopt;
    auto out = std::move(found->second);
    all_.erase(found);
    numbers_.erase(key_of(out.token));
    return out;
  }

  /// Nobody waits for that one any more.
  void forget(const reply_token& token) {
    const std::lock_guard lock(mutex_);
    const auto found = numbers_.find(key_of(token));
    if (found == numbers_.end())
      return;
    all_.erase(found->second);
    numbers_.erase(found);
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    all_.clear();
    numbers_.clear();
  }

 private:
  using key = std::tuple<std::string, std::uint64_t, std::uint64_t>;

  static key key_of(const reply_token& token) { return {token.node, token.session, token.correlation}; }

  std::mutex mutex_;
  std::unordered_map<std::uint64_t, request> all_;
  std::map<key, std::uint64_t> numbers_;
  std::uint64_t last_ = 0;
};

} // namespace godwit::link
