#pragma once

#include "services/link/counters.hpp"
#include "services/link/keys.hpp"
#include "services/link/transport.hpp"

#include <zmq.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace godwit::link::detail {

/// Reads one message after the other from sockets. What it gives is valid until it reads the next.
class frame_reader {
 public:
  /// @param most frames of a message
  frame_reader(std::size_t most, link_counters& counters) : most_(most), counters_(counters) {}

  /// Reads the rest of a message; a message of too many frames is read to its end, counted and dropped.
  /// @param more whether there is a rest @returns false if it had too many
  bool read(zmq::socket_t& from, bool more);
  /// The same, with the first frame, which was read already.
  bool read_behind(zmq::socket_t& from, zmq::message_t first);

  std::vector<zmq::message_t>& frames() { return frames_; }
  /// The frames as views; those behind the first can be kept, and are moved out.
  std::span<const received_frame> views();

  /// Whose key the message came with, by the list as it is now: a key that was taken off is nobody's, though
  /// its connection may still be there. Empty: nobody's.
  std::string owner(const allow_list& allowed);

 private:
  std::size_t most_;
  link_counters& counters_;
  // Kept between calls so that they need no memory each time.
  std::vector<zmq::message_t> frames_;
  std::vector<received_frame> views_;
  std::unordered_map<std::string, public_key> users_; ///< keys by their text, as ZeroMQ says them
};

} // namespace godwit::link::detail
