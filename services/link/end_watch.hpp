#pragma once

#include <caf/actor_control_block.hpp>
#include <caf/error.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace godwit::link {

/// Tells when actors of this node end. An actor that is watched gets one attachment, however often it is to
/// be watched: CAF keeps each until the actor is gone. Any thread may call.
class end_watch : public std::enable_shared_from_this<end_watch> {
 public:
  /// On the thread of whoever ends; may be called twice for one actor.
  using told = std::function<void(caf::actor_id ended, const caf::error& reason)>;

  explicit end_watch(told tell) : tell_(std::move(tell)) {}

  /// Tells of that actor's end from now on; at once, before this returns, if it has ended already.
  void watch(const caf::strong_actor_ptr& actor);

  /// Actors that are watched now.
  std::size_t size() const;

 private:
  class notice;

  void forget(caf::actor_id actor);

  const told tell_;
  mutable std::mutex mutex_;
  std::unordered_map<caf::actor_id, bool> known_; ///< by whether it has its attachment already
};

} // namespace godwit::link
