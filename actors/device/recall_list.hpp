#pragma once

#include "actors/device/step.hpp"

#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace godwit {

/// Sequences that nobody wants any more, told to the device past its mailbox: their close may stand there
/// behind rows of the same sequences, and the device would compute one more step for nobody. Whoever adds
/// some sends CloseSequences for them afterwards, each sequence once. Thread-safe.
class recall_list {
 public:
  void add(std::span<const sequence_key> keys) {
    const std::lock_guard lock(mutex_);
    keys_.insert(keys_.end(), keys.begin(), keys.end());
    added_ += keys.size();
  }

  /// Those added since the last call.
  std::vector<sequence_key> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(keys_, {});
  }

  /// All that were ever added.
  std::uint64_t added() const {
    const std::lock_guard lock(mutex_);
    return added_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<sequence_key> keys_;
  std::uint64_t added_ = 0;
};

} // namespace godwit
