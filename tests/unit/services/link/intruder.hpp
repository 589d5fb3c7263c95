#pragma once

// Sockets that have a key which a node accepts, and no manners.

#include "tests/unit/services/link/real_links.hpp"

#include <zmq.hpp>

#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace godwit::link {

using raw_frame = std::vector<std::byte>;

inline void send_all(zmq::socket_t& to, const std::vector<raw_frame>& frames) {
  for (std::size_t i = 0; i < frames.size(); ++i)
    to.send(zmq::const_buffer(frames[i].data(), frames[i].size()),
      i + 1 < frames.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
}

inline raw_frame random_bytes(std::mt19937& random, std::size_t most) {
  raw_frame out(random() % most);
  for (auto& each : out)
    each = static_cast<std::byte>(random());
  return out;
}

/// A frame cut at each word, nothing first, the whole one left out.
inline std::vector<raw_frame> cuts_of(const raw_frame& whole) {
  std::vector<raw_frame> out;
  for (std::size_t length = 0; length < whole.size(); length += 8)
    out.emplace_back(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
  return out;
}

/// One that connects to a node.
struct intruder {
  zmq::context_t context{1};
  zmq::socket_t socket;

  intruder(const peer_record& whom, const std::string& endpoint, const std::optional<node_keys>& keys,
    zmq::socket_type type = zmq::socket_type::dealer)
    : socket(context, type) {
    socket.set(zmq::sockopt::linger, 200);
    // A connection that was refused takes nothing.
    socket.set(zmq::sockopt::sndtimeo, 500);
    if (keys) {
      socket.set(zmq::sockopt::curve_serverkey, zmq::const_buffer(whom.key->bytes.data(), 32));
      socket.set(zmq::sockopt::curve_publickey, zmq::const_buffer(keys->open.bytes.data(), 32));
      socket.set(zmq::sockopt::curve_secretkey, zmq::const_buffer(keys->secret.bytes().data(), 32));
    }
    socket.connect(endpoint);
  }

  void say(const std::vector<raw_frame>& frames) { send_all(socket, frames); }
};

} // namespace godwit::link
