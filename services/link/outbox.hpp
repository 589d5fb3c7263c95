#pragma once

#include "services/link/transport.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

namespace godwit::link {

/// How much may wait for one peer in one lane.
struct outbox_limits {
  std::size_t parcels = 8192;
  std::size_t bytes = std::size_t{64} << 20; ///< one parcel alone may be larger
};

/// A message that waits for its peer.
struct queued {
  parcel what;
  moment deadline = never;
  std::uint64_t request = 0; ///< of this node, 0 if it is none
};

/// What waits for one peer in one lane; bounded, in order.
class outbox {
 public:
  explicit outbox(outbox_limits most = {}) : most_(most) {}

  /// @returns false if it is full
  bool push(queued one) {
    const auto bytes = one.what.bytes();
    if (!all_.empty() && (all_.size() >= most_.parcels || bytes_ + bytes > most_.bytes))
      return false;
    bytes_ += bytes;
    all_.push_back(std::move(one));
    return true;
  }

  bool empty() const { return all_.empty(); }
  std::size_t size() const { return all_.size(); }
  std::size_t bytes() const { return bytes_; }
  queued& front() { return all_.front(); }

  /// Takes the first one away. @param bytes of it, before it was moved from
  void pop(std::size_t bytes) {
    bytes_ -= bytes;
    all_.pop_front();
  }

  /// @returns how many of them nobody will be told of: all but requests
  std::size_t clear() {
    const auto silent = std::ranges::count_if(all_, [](const queued& one) { return one.request == 0; });
    all_.clear();
    bytes_ = 0;
    return static_cast<std::size_t>(silent);
  }

 private:
  outbox_limits most_;
  std::deque<queued> all_;
  std::size_t bytes_ = 0;
};

} // namespace godwit::link
