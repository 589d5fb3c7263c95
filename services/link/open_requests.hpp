#pragma once

#include "services/link/end_cause.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace godwit::link {

/// Requests of this node's actors to other nodes that are without an answer, by who asked. Any thread may
/// call.
class open_requests {
 public:
  /// Who asked, its number of the request, and one of ours.
  using key = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;

  /// Before it is sent: its answer may come before it has its number.
  key open(std::uint64_t asker, std::uint64_t request) {
    const std::lock_guard lock(mutex_);
    const key made{asker, request, ++last_};
    all_.emplace(made, entry{});
    return made;
  }

  /// The link knows it by this number. @returns why nobody waits for it any more, if that is so already
  end_cause sent(const key& which, std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(which);
    if (found == all_.end())
      return end_cause::none;
    found->second.number = number;
    return found->second.over;
  }

  /// It has its answer, or the failure that stands for it.
  void close(const key& which) {
    const std::lock_guard lock(mutex_);
    all_.erase(which);
  }

  /// Whoever asked waits for nothing any more, or not for this request. @returns numbers of the link to
  /// cancel; one that has none yet is told by sent()
  std::vector<std::uint64_t> give_up(std::uint64_t asker, end_cause cause) {
    return give_up({asker, 0, 0}, {asker + 1, 0, 0}, cause);
  }
  std::vector<std::uint64_t> give_up(std::uint64_t asker, std::uint64_t request, end_cause cause) {
    return give_up({asker, request, 0}, {asker, request + 1, 0}, cause);
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return all_.size();
  }

 private:
  struct entry {
    std::uint64_t number = 0;
    end_cause over = end_cause::none;
  };

  std::vector<std::uint64_t> give_up(const key& from, const key& to, end_cause cause) {
    std::vector<std::uint64_t> out;
    const std::lock_guard lock(mutex_);
    const auto end = all_.lower_bound(to);
    for (auto it = all_.lower_bound(from); it != end; ++it) {
      if (it->second.over != end_cause::none)
        continue;
      it->second.over = cause;
      if (it->second.number != 0)
        out.push_back(it->second.number);
    }
    return out;
  }

  mutable std::mutex mutex_;
  std::map<key, entry> all_;
  std::uint64_t last_ = 0;
};

} // namespace godwit::link
