#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace godwit {

bool is_ipv4(const std::string& host);
/// Without brackets.
bool is_ipv6(const std::string& host);
/// Whether a text can be a name of DNS. One whose last part is a number would be an address, and is none
/// (RFC 3696, section 2).
bool is_host_name(const std::string& host);

/// As ZeroMQ writes it: tcp://10.0.0.7:7401, tcp://[::1]:7401
std::string tcp_endpoint(const std::string& host, std::uint16_t port);
/// Whether a text is such an endpoint, with an address or a host's name and a port from 1 on.
bool is_tcp_endpoint(std::string_view text);

} // namespace godwit
