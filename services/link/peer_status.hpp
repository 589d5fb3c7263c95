#pragma once

#include "messages/ids.hpp"
#include "services/link/transport.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace godwit::link {

enum class peer_state : std::uint8_t {
  away,    ///< waits before it dials again
  dialing, ///< connects, or waits for the greetings of both sides
  up,
};

/// A peer as it stands.
struct peer_status {
  node_name node;
  peer_state state = peer_state::away;
  std::uint64_t incarnation = 0;
  moment round_trip{0};
  std::size_t queued_parcels = 0; ///< letters
  std::size_t queued_bytes = 0;
  std::size_t queued_bulk = 0; ///< messages of the bulk lane
  std::size_t queued_bulk_bytes = 0;
  std::string refusal; ///< why it is not there, if somebody said so

  // Since it was added, beats and greetings left out.
  std::uint64_t letters_sent = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t letters_received = 0;
  std::uint64_t bytes_received = 0;
  std::size_t streams = 0;  ///< that this node sends it
  std::uint64_t credit = 0; ///< items that it takes of them now
};

} // namespace godwit::link
