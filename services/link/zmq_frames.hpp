#pragma once

// Frames of ZeroMQ's from bytes of ours. For zmq_transport.cpp and its parts only: ZeroMQ stays there and in
// the keys.

#include "services/link/byte_window.hpp"
#include "services/link/transport.hpp"

#include <zmq.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace godwit::link::detail {

/// Smaller frames are copied: cheaper than counting references.
inline constexpr std::size_t copied_up_to = 1024;

/// What keeps a frame's bytes alive. ZeroMQ's thread lets it go; ZeroMQ orders that behind the making, and
/// the flag says so in words that ThreadSanitizer understands, which does not see into the library.
template <class Owner>
struct kept_owner {
  Owner owner;
  std::size_t bytes;
  std::shared_ptr<byte_window> window;
  std::atomic<bool> made{false};
};

/// A frame of ZeroMQ's from bytes that are kept alive by `owner` until they have been sent.
/// @param window they count in meanwhile; may be null
template <class Owner>
zmq::message_t lend(
  std::span<const std::byte> bytes, Owner owner, const std::shared_ptr<byte_window>& window) {
  if (window)
    window->lend(bytes.size());
  auto* const kept = new kept_owner<Owner>{std::move(owner), bytes.size(), window};
  kept->made.store(true, std::memory_order_release);
  const auto let_go = [](void*, void* hint) {
    auto* const held = static_cast<kept_owner<Owner>*>(hint);
    (void)held->made.load(std::memory_order_acquire);
    if (held->window)
      held->window->give_back(held->bytes);
    delete held;
  };
  return zmq::message_t(const_cast<std::byte*>(bytes.data()), bytes.size(), let_go, kept);
}

inline zmq::message_t copy(std::span<const std::byte> bytes) {
  return zmq::message_t(bytes.data(), bytes.size());
}

inline zmq::message_t head_frame(
  std::vector<std::byte> head, const std::shared_ptr<byte_window>& window = nullptr) {
  if (head.size() <= copied_up_to)
    return copy(head);
  // Moving a vector leaves its bytes where they are.
  const std::span<const std::byte> bytes = head;
  return lend(bytes, std::move(head), window);
}

inline zmq::message_t attached_frame(attachment what, const std::shared_ptr<byte_window>& window) {
  const std::span<const std::byte> bytes = *what;
  return bytes.size() <= copied_up_to ? copy(bytes) : lend(bytes, std::move(what), window);
}

inline std::string_view text(const zmq::message_t& message) {
  return {static_cast<const char*>(message.data()), message.size()};
}

} // namespace godwit::link::detail
