#pragma once

#include "messages/ids.hpp"
#include "messages/letter.hpp"
#include "services/link/keys.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::link {

/// Time since the link began; never goes back.
using moment = std::chrono::microseconds;
inline constexpr moment never = moment::max();

/// Each way from a node to another has sockets of its own for each of these, so that a gigabyte of pages
/// never delays a cancel. The order of letters is kept within a lane, not between them.
enum class lane : std::uint8_t { letters, bulk, events };

/// Where a node is and by which key it is known.
struct peer_record {
  node_name name;
  std::optional<public_key> key; ///< nothing on plain sockets
  std::string letters;           ///< ZeroMQ endpoints, as tcp://10.0.0.7:7401
  std::string bulk;
  std::string events;
};

/// A message on its way out: the frame that encode() made, and the raw frames behind it.
struct parcel {
  std::vector<std::byte> head;
  std::vector<attachment> attachments;

  std::size_t bytes() const {
    std::size_t sum = head.size();
    for (const auto& each : attachments)
      sum += each->size();
    return sum;
  }
};

/// A frame that came in. The bytes live as long as the owner.
struct received_frame {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// An outgoing connection to one lane of a peer; 0 is none.
using channel_id = std::uint32_t;

/// The way back of an incoming connection: ZeroMQ's routing id.
struct return_path {
  lane which = lane::letters;
  std::string id;
};

/// What carries frames: ZeroMQ, or a simulated network. Used by one thread.
class transport {
 public:
  virtual ~transport() = default;

  /// Begins to connect. Never waits, never fails: a channel that leads nowhere takes no frames.
  virtual channel_id dial(lane which, const peer_record& whom) = 0;
  /// Closes a channel and drops what has not left yet.
  virtual void hang_up(channel_id channel) = 0;
  /// Sends a message, in order. Moves from `what` unless it returns false: not now.
  virtual bool send(channel_id channel, parcel& what) = 0;
  /// Sends a message back on an incoming connection. @returns false if that is gone or full; it is not
  /// repeated
  virtual bool answer(const return_path& path, parcel what) = 0;
};

} // namespace godwit::link
