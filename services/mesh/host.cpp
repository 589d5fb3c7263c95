#include "services/mesh/host.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace godwit {

bool is_ipv4(const std::string& host) {
  in_addr out{};
  return ::inet_pton(AF_INET, host.c_str(), &out) == 1;
}

bool is_ipv6(const std::string& host) {
  in6_addr out{};
  return ::inet_pton(AF_INET6, host.c_str(), &out) == 1;
}

bool is_host_name(const std::string& host) {
  if (host.empty() || host.size() > 253)
    return false;
  std::size_t begin = 0;
  for (;;) {
    const auto end = std::min(host.find('.', begin), host.size());
    const std::string_view part(host.data() + begin, end - begin);
    const auto fits = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-'
             || c == '_';
    };
    if (part.empty() || part.size() > 63 || part.front() == '-' || part.back() == '-'
        || !std::ranges::all_of(part, fits))
      return false;
    if (end == host.size())
      return !std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    begin = end + 1;
  }
}

std::string tcp_endpoint(const std::string& host, std::uint16_t port) {
  return "tcp://" + (is_ipv6(host) ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

bool is_tcp_endpoint(std::string_view text) {
  constexpr std::string_view tcp = "tcp://";
  if (!text.starts_with(tcp))
    return false;
  text.remove_prefix(tcp.size());
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos)
    return false;
  std::uint16_t port = 0;
  const auto* const end = text.data() + text.size();
  if (const auto [stop, code] = std::from_chars(text.data() + colon + 1, end, port);
      code != std::errc{} || stop != end || port == 0)
    return false;
  const std::string host(text.substr(0, colon));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    return is_ipv6(host.substr(1, host.size() - 2));
  return is_ipv4(host) || is_host_name(host);
}

} // namespace godwit
