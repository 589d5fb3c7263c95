#include "services/link/zmq_setup.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace godwit::link::detail {

namespace {

constexpr auto zap_domain = "godwit";

std::string_view key_text(const std::array<std::byte, 32>& key) {
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

/// Which of ZeroMQ's two threads serves a lane.
std::uint64_t thread_of(lane which) {
  return which == lane::bulk ? 2 : 1;
}

} // namespace

int wants_ipv6(std::string_view endpoint) {
  return endpoint.find('[') != std::string_view::npos ? 1 : 0;
}

zmq::socket_t server_socket(zmq::context_t& context, const socket_options& options, lane which) {
  const bool events = which == lane::events;
  const auto messages = events                ? options.event_messages
                        : which == lane::bulk ? options.bulk_messages
                                              : options.letter_messages;
  zmq::socket_t socket(context, events ? zmq::socket_type::pub : zmq::socket_type::router);
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::sndhwm, messages);
  socket.set(zmq::sockopt::rcvhwm, messages);
  socket.set(zmq::sockopt::maxmsgsize, which == lane::bulk ? options.bulk_bytes : options.letter_bytes);
  socket.set(zmq::sockopt::handshake_ivl, 3000);
  socket.set(zmq::sockopt::affinity, thread_of(which));
  // Closes connections whose other end has vanished; beats are the link's own.
  socket.set(zmq::sockopt::heartbeat_ivl, 10'000);
  socket.set(zmq::sockopt::heartbeat_timeout, 30'000);
  // Also for plain sockets: so that they ask here who connects, and refuse what does not speak today's
  // protocol.
  socket.set(zmq::sockopt::zap_domain, zap_domain);
  if (!events)
    socket.set(zmq::sockopt::router_mandatory, 1);
  if (options.keys) {
    socket.set(zmq::sockopt::curve_server, 1);
    socket.set(zmq::sockopt::curve_secretkey, zmq::buffer(key_text(options.keys->secret.bytes())));
  }
  return socket;
}

zmq::socket_t client_socket(zmq::context_t& context, const socket_options& options, lane which,
  std::string_view endpoint, const std::optional<public_key>& key) {
  const bool events = which == lane::events;
  zmq::socket_t socket(context, events ? zmq::socket_type::sub : zmq::socket_type::dealer);
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::ipv6, wants_ipv6(endpoint));
  // Only to connections that are there; none is made again behind our back: whoever dials decides.
  socket.set(zmq::sockopt::immediate, 1);
  socket.set(zmq::sockopt::reconnect_ivl, -1);
  socket.set(zmq::sockopt::connect_timeout, 3000);
  socket.set(zmq::sockopt::handshake_ivl, 3000);
  socket.set(zmq::sockopt::affinity, thread_of(which));
  socket.set(zmq::sockopt::sndhwm, which == lane::bulk ? options.bulk_messages : options.letter_messages);
  socket.set(zmq::sockopt::rcvhwm, events ? options.event_messages : options.letter_messages);
  socket.set(zmq::sockopt::maxmsgsize, options.letter_bytes);
  if (options.keys && key) {
    socket.set(zmq::sockopt::curve_serverkey, zmq::buffer(key_text(key->bytes)));
    socket.set(zmq::sockopt::curve_publickey, zmq::buffer(key_text(options.keys->open.bytes)));
    socket.set(zmq::sockopt::curve_secretkey, zmq::buffer(key_text(options.keys->secret.bytes())));
  }
  return socket;
}

} // namespace godwit::link::detail

namespace godwit::link {

bool is_loopback(std::string_view endpoint) {
  constexpr std::string_view tcp = "tcp://";
  if (!endpoint.starts_with(tcp))
    return false;
  endpoint.remove_prefix(tcp.size());
  if (endpoint.starts_with("[::1]:"))
    return true;
  const auto host = endpoint.substr(0, endpoint.rfind(':'));
  if (!host.starts_with("127."))
    return false;
  // A name could begin with 127. too.
  return std::ranges::all_of(host, [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

} // namespace godwit::link
