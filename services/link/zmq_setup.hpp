#pragma once

#include "services/link/zmq_transport.hpp"

#include <zmq.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace godwit::link::detail {

/// Endpoints with an address in brackets; others are bound and reported as IPv4.
int wants_ipv6(std::string_view endpoint);

/// A node's own socket of a lane, not yet bound: ROUTER, or PUB for events.
zmq::socket_t server_socket(zmq::context_t& context, const socket_options& options, lane which);

/// A socket to a peer's lane, not yet connected: DEALER, or SUB for events.
/// @param key the peer's, if this node has keys
zmq::socket_t client_socket(zmq::context_t& context, const socket_options& options, lane which,
  std::string_view endpoint, const std::optional<public_key>& key);

} // namespace godwit::link::detail
