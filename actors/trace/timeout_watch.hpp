#pragma once

#include <caf/fwd.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/message_id.hpp>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>

namespace godwit {

/// Hears of requests that have timed out where they were asked. A request of CAF does not say how long its
/// sender waits: only the sender is told when the time is over, by a message of its own clock. Any thread may
/// call.
class timeout_watch {
 public:
  /// Called on the clock's thread: nothing in it may wait. Perhaps of a request that was answered before.
  using told = std::function<void(const caf::actor_control_block& asker, caf::message_id request)>;

  /// Tells until the result is let go.
  static std::shared_ptr<void> listen(told tell);

  /// What comes to an actor. For all but answers, and while nobody listens, that is one look.
  static void note(const caf::actor_control_block& asker, const caf::mailbox_element& what) {
    if (what.mid.is_response() && listeners.load(std::memory_order_relaxed) != 0)
      look(asker, what);
  }

 private:
  static void look(const caf::actor_control_block& asker, const caf::mailbox_element& what);

  static std::atomic<std::size_t> listeners;
};

} // namespace godwit
