#pragma once

#include "actors/cache/cold_store.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace godwit::test {

/// A cold store in memory, with the faults of a disk. Any thread.
class memory_cold_store final : public cold_store {
 public:
  std::size_t known(std::span<const block_identity> chain) const override {
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    while (count < chain.size() && blocks_.contains(key(chain[count])))
      ++count;
    return count;
  }

  std::size_t read(
    std::span<const block_identity> chain, std::span<const std::span<std::byte>> into) override {
    if (before_read)
      before_read();
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const auto found = blocks_.find(key(chain[i]));
      if (found == blocks_.end()) {
        ++stats_.misses;
        return i;
      }
      if (damaged == i) {
        std::fill(into[i].begin(), into[i].end(), std::byte{0x5a});
        blocks_.erase(found);
        ++stats_.damaged;
        return i;
      }
      std::copy(found->second.begin(), found->second.end(), into[i].begin());
      ++stats_.hits;
    }
    return chain.size();
  }

  result<void> write(std::span<const cold_block> blocks) override {
    if (before_write)
      before_write();
    const std::lock_guard lock(mutex_);
    if (refuses) {
      ++stats_.failures;
      return fail(errc::resource_exhausted, "the disk is full");
    }
    for (const auto& block : blocks) {
      parents_first = parents_first && (block.depth == 0 || blocks_.contains(key(block.parent)));
      if (blocks_.emplace(key(block.identity), std::vector(block.pages.begin(), block.pages.end())).second)
        ++stats_.written;
    }
    return {};
  }

  cold_stats stats() const override {
    const std::lock_guard lock(mutex_);
    auto out = stats_;
    out.blocks = blocks_.size();
    out.degraded = refuses;
    return out;
  }

  void lose_all() {
    const std::lock_guard lock(mutex_);
    blocks_.clear();
  }

  std::function<void()> before_read;
  std::function<void()> before_write;
  bool refuses = false;
  bool parents_first = true;
  std::size_t damaged = ~std::size_t{0}; ///< place in a read of a record that does not check

 private:
  using name = std::pair<std::uint64_t, std::uint64_t>;
  static name key(const block_identity& identity) { return {identity.high, identity.low}; }

  mutable std::mutex mutex_;
  std::map<name, std::vector<std::byte>> blocks_;
  cold_stats stats_;
};

} // namespace godwit::test
