#pragma once

#include "messages/error.hpp"
#include "messages/schemas/session.capnp.h"

#include <cstdint>
#include <optional>
#include <string>

namespace godwit {

/// A session's events on their way to one client: batches to server-sent events, and what must be known to go
/// on after the session has moved.
class event_stream {
 public:
  /// @param after the event that the client had last; empty for none
  explicit event_stream(std::string after) : last_id_(std::move(after)) {}

  struct taken {
    std::string bytes;
    std::uint32_t events = 0; ///< that the batch had: the credit it cost
    bool ended = false;
    std::optional<error> failure; ///< why it ended early
  };

  taken take(schema::EventBatch::Reader batch);

  /// The last event that was taken: where to go on.
  const std::string& last_id() const { return last_id_; }
  bool begun() const { return begun_; }
  /// True while the events say that a turn runs.
  bool turn_running() const { return turn_running_; }

 private:
  std::string last_id_;
  bool begun_ = false;
  bool turn_running_ = false;
};

} // namespace godwit
