#pragma once

#include "messages/ids.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace godwit {

/// Which sessions have an actor, and which of them have not been asked for longest. Times are steady
/// milliseconds.
class live_sessions {
 public:
  /// @param most sessions with an actor
  /// @param idle more than so many are too many to keep for nothing
  /// @param idle_after a session that nobody asked for so long need not have an actor
  live_sessions(std::size_t most, std::size_t idle, std::chrono::milliseconds idle_after)
    : most_(most), idle_(idle), idle_after_(idle_after.count()) {}

  /// False if there are too many.
  bool room() const { return used_.size() < most_; }
  void add(const session_id& session, std::int64_t now) { used(session, now); }
  /// Somebody asked for it.
  void used(const session_id& session, std::int64_t now);
  void remove(const session_id& session);
  std::size_t size() const { return used_.size(); }

  /// Those that may be asked to end now, the longest unused first.
  std::vector<session_id> unused(std::int64_t now, std::size_t most) const;

 private:
  std::size_t most_;
  std::size_t idle_;
  std::int64_t idle_after_;
  std::unordered_map<session_id, std::int64_t> used_;
  std::set<std::pair<std::int64_t, session_id>> order_;
};

} // namespace godwit
