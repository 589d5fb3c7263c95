#include "services/mesh/endpoint_probe.hpp"

#include "messages/descriptor.hpp"
#include "services/mesh/host.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace godwit {

namespace {

using clock = std::chrono::steady_clock;

bool wait_for(int socket, short what, clock::time_point end) {
  pollfd one{socket, what, 0};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - clock::now()).count();
  return ::poll(&one, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) == 1;
}

bool connected(int socket, const addrinfo& at, clock::time_point end) {
  if (::connect(socket, at.ai_addr, at.ai_addrlen) == 0)
    return true;
  if (errno != EINPROGRESS || !wait_for(socket, POLLOUT, end))
    return false;
  int failure = 0;
  socklen_t size = sizeof failure;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &failure, &size) == 0 && failure == 0;
}

/// The signature: 0xff, eight bytes of padding, 0x7f.
bool greets(int socket, clock::time_point end) {
  std::array<unsigned char, 10> seen{};
  std::size_t have = 0;
  while (have < seen.size()) {
    if (!wait_for(socket, POLLIN, end))
      return false;
    const auto got = ::recv(socket, seen.data() + have, seen.size() - have, 0);
    if (got <= 0)
      return false;
    have += static_cast<std::size_t>(got);
  }
  return seen.front() == 0xff && seen.back() == 0x7f;
}

} // namespace

bool speaks_zmtp(const std::string& endpoint, std::chrono::milliseconds patience) {
  if (!is_tcp_endpoint(endpoint))
    return false;
  const auto colon = endpoint.rfind(':');
  auto host = endpoint.substr(6, colon - 6);
  if (host.starts_with('['))
    host = host.substr(1, host.size() - 2);
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), endpoint.c_str() + colon + 1, &wanted, &found) != 0)
    return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  const auto end = clock::now() + patience;
  for (const auto* at = found; at != nullptr; at = at->ai_next) {
    const descriptor one(
      ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol));
    if (one && connected(*one, *at, end) && greets(*one, end))
      return true;
  }
  return false;
}

} // namespace godwit
