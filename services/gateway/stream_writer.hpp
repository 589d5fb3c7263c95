#pragma once

#include "services/api/outbox.hpp"
#include "services/http/exchange.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace godwit {

/// The client's side of a stream of events, used by one actor: the head before the first bytes, one write
/// under way, heartbeats while it is quiet, and a clean end behind the last byte.
class stream_writer {
 public:
  /// @param exchange outlives the writer
  /// @param written  told, on any thread, that the write is over and whether the client is still there; the
  ///                 actor then calls written()
  stream_writer(http::exchange& exchange, std::size_t producers, std::function<void(bool)> written)
    : exchange_(exchange), outbox_(producers), written_(std::move(written)) {}

  outbox& box() { return outbox_; }
  bool begun() const { return begun_; }
  bool writing() const { return outbox_.writing(); }

  /// Sends the head of a stream of server-sent events, once.
  void begin();
  /// Writes what waits, if the head was sent. @returns true when the stream has ended
  bool pump();
  void written();
  /// Ends the stream behind what waits now.
  void close() { closing_ = true; }
  bool closing() const { return closing_; }
  /// Ends the stream now with these bytes, or by cutting it off if the client is behind with reading.
  void abandon(std::string bytes);
  /// Time has passed; a stream that was quiet for `heartbeat` sends a comment.
  void pass(std::chrono::milliseconds time, std::chrono::milliseconds heartbeat);

 private:
  http::exchange& exchange_;
  outbox outbox_;
  std::function<void(bool)> written_;
  std::chrono::milliseconds quiet_{0};
  bool begun_ = false;
  bool closing_ = false;
};

} // namespace godwit
