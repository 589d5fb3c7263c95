#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace godwit::http::test {

/// A client that sends exactly the bytes it is told to.
class raw_client {
 public:
  /// @param receive_buffer of the socket; 0 leaves the system's
  explicit raw_client(std::uint16_t port, int receive_buffer = 0)
    : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    REQUIRE(socket_ >= 0);
    if (receive_buffer > 0)
      ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
  }
  ~raw_client() { close(); }
  raw_client(const raw_client&) = delete;
  raw_client& operator=(const raw_client&) = delete;

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0)
        return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  void half_close() { ::shutdown(socket_, SHUT_WR); }
  /// Closes with a reset instead of an end.
  void reset() {
    const linger now{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }
  void close() {
    if (socket_ >= 0)
      ::close(socket_);
    socket_ = -1;
  }

  /// What arrives until `end` was seen, the server closes, or five seconds are over.
  std::string read_until(std::string_view end) {
    std::string out;
    while (out.find(end) == std::string::npos && read_some(out)) {
    }
    return out;
  }
  /// What arrives until the server closes.
  std::string read_all() {
    std::string out;
    while (read_some(out)) {
    }
    return out;
  }
  /// True if the server closed within the time.
  bool closed_within(std::chrono::milliseconds time) {
    std::string out;
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
      pollfd waiting{socket_, POLLIN, 0};
      if (::poll(&waiting, 1, 10) == 1 && !read_some(out))
        return true;
    }
    return false;
  }
  std::size_t read_at_most(std::size_t bytes) {
    std::string buffer(bytes, '\0');
    const auto n = ::recv(socket_, buffer.data(), bytes, 0);
    return n > 0 ? static_cast<std::size_t>(n) : 0;
  }

 private:
  bool read_some(std::string& out) {
    pollfd waiting{socket_, POLLIN, 0};
    if (::poll(&waiting, 1, 5000) != 1)
      return false;
    char buffer[16384];
    const auto n = ::recv(socket_, buffer, sizeof buffer, 0);
    if (n <= 0)
      return false;
    out.append(buffer, static_cast<std::size_t>(n));
    return true;
  }

  int socket_;
};

} // namespace godwit::http::test
