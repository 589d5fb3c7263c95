#pragma once

#include "messages/result.hpp"
#include "services/link/counters.hpp"
#include "services/link/keys.hpp"
#include "services/link/transport.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace godwit::link {

struct socket_options {
  node_name node;
  std::optional<node_keys> keys; ///< nothing: plain sockets, which are bound to loopback only
  std::string letters = "tcp://127.0.0.1:*";
  std::string bulk = "tcp://127.0.0.1:*";
  std::string events = "tcp://127.0.0.1:*";
  int letter_messages = 1000; ///< in ZeroMQ's own queues, for each connection and direction
  int bulk_messages = 8;
  int event_messages = 10'000;
  /// Bytes of them that ZeroMQ has of one connection out; beyond it takes one message more at most. Frames up
  /// to a kilobyte are not counted: their number bounds them.
  std::size_t letter_window = std::size_t{8} << 20;
  std::size_t bulk_window = std::size_t{64} << 20;
  std::int64_t letter_bytes = std::int64_t{2} << 20; ///< of a frame; a connection that sends more is closed
  std::int64_t bulk_bytes = std::int64_t{64} << 20;
  std::size_t most_frames = 1025; ///< of a message
};

/// Where a link is reached.
struct bound_endpoints {
  std::string letters;
  std::string bulk;
  std::string events;
};

/// Takes what the sockets received.
class message_sink {
 public:
  virtual ~message_sink() = default;
  virtual void on_message(
    lane which, std::string_view who, const return_path& path, std::span<const received_frame> frames) = 0;
  virtual void on_channel_message(channel_id channel, std::span<const received_frame> frames) = 0;
  virtual void on_event_message(
    channel_id channel, std::string_view topic, std::span<const received_frame> frames) = 0;
};

/// A link's sockets: a ROUTER for letters, one for bulk, a PUB for events; to each peer a DEALER for letters,
/// one for bulk, a SUB for events. With CURVE on each, a ZAP handler that knows the allow-list, and counters
/// of what was turned away. Used by one thread at a time, but for wake().
class zmq_transport : public transport {
 public:
  /// @returns `permission` for plain sockets that are not on loopback, `invalid_argument` for an endpoint
  /// that is none, `io` when binding fails, `unsupported` if libzmq has no CURVE
  static result<std::unique_ptr<zmq_transport>> open(socket_options options, link_counters& counters);

  virtual const bound_endpoints& bound() const = 0;
  /// Whose connections are accepted.
  virtual allow_list& allowed() = 0;

  /// Sends an event to whoever has subscribed, and to nobody else. Never waits.
  virtual void publish(std::string_view topic, parcel what) = 0;
  /// Events of topics that begin so, of all peers, now and later.
  virtual void subscribe(std::string_view prefix) = 0;

  /// Hands over what has come, up to a portion of each socket. @returns whether anything had
  virtual bool receive(message_sink& sink) = 0;
  /// Waits until something has come, a channel that was full takes messages again, wake() is called, or the
  /// time is over.
  /// @param turn held by the caller, who alone uses this; given up while it waits, and only then
  virtual void wait(moment time, std::unique_lock<std::mutex>& turn) = 0;
  /// For whoever had the turn while another thread waits, before it gives it back. @returns whether that
  /// thread has to be woken: it would not hear of what has come meanwhile
  virtual bool settle() = 0;
  /// Ends a wait(). From any thread.
  virtual void wake() = 0;
  /// How long closed channels may go on sending what they have.
  virtual void linger(std::chrono::milliseconds time) = 0;
};

/// Whether a ZeroMQ endpoint can be reached from this machine only: tcp://127.…, tcp://[::1]:…
bool is_loopback(std::string_view endpoint);

} // namespace godwit::link
