#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace godwit {

/// Ports of loopback that nobody has just now.
inline std::vector<std::uint16_t> free_ports(std::size_t count) {
  std::vector<int> held;
  std::vector<std::uint16_t> out;
  for (std::size_t i = 0; i < count; ++i) {
    const int one = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    if (one < 0 || ::bind(one, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0
        || ::getsockname(one, reinterpret_cast<sockaddr*>(&at), &size) != 0)
      throw std::runtime_error("no free port");
    held.push_back(one);
    out.push_back(ntohs(at.sin_port));
  }
  for (const auto each : held)
    ::close(each);
  return out;
}

} // namespace godwit
