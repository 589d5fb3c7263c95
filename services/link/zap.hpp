#pragma once

#include "services/link/keys.hpp"

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace godwit::link {

/// What was decided about a connection.
struct zap_verdict {
  bool accepted = false;
  std::string user; ///< the key as Z85: comes with every message of the connection
};

/// Decides about a request of ZeroMQ's authentication protocol (rfc.zeromq.org/spec/27).
/// @param request its frames
/// @param allowed the keys that may connect; null: plain sockets, where loopback may
zap_verdict judge(std::span<const std::string_view> request, const allow_list* allowed);

/// The frames of the answer.
std::array<std::string, 6> zap_reply(std::span<const std::string_view> request, const zap_verdict& verdict);

} // namespace godwit::link
