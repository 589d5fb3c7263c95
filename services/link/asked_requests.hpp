#pragma once

#include "services/link/actor_codec.hpp"
#include "services/link/receiver.hpp"

#include <caf/actor_control_block.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace godwit::link {

/// Requests of other nodes that local actors have not answered yet. Any thread may call.
class asked_requests {
 public:
  struct request {
    reply_token token;
    const signature_codec* signature = nullptr;
    caf::strong_actor_ptr asker; ///< whom the local actor takes for the one who asks
    std::string actor;           ///< whom it asks, of one that is traced
    std::chrono::steady_clock::time_point since{};
  };

  /// The number under which a local actor will be asked.
  std::uint64_t next() {
    const std::lock_guard lock(mutex_);
    return ++last_;
  }
  /// @param number one of next()
  void add(std::uint64_t number, request one) {
    const std::lock_guard lock(mutex_);
    numbers_.emplace(key_of(one.token), number);
    all_.emplace(number, std::move(one));
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

  /// Nobody waits for that one any more. @returns it, unless it was answered
  std::optional<request> forget(const reply_token& token) {
    const std::lock_guard lock(mutex_);
    const auto found = numbers_.find(key_of(token));
    if (found == numbers_.end())
      return std::nullopt;
    auto out = std::move(all_.extract(found->second).mapped());
    numbers_.erase(found);
    return out;
  }

  /// Nobody waits for any. @returns them
  std::vector<request> clear() {
    std::vector<request> out;
    const std::lock_guard lock(mutex_);
    for (auto& [number, each] : std::exchange(all_, {}))
      out.push_back(std::move(each));
    numbers_.clear();
    return out;
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
