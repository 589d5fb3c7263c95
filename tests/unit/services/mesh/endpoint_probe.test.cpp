#include "services/mesh/endpoint_probe.hpp"

#include "tests/unit/services/mesh/free_ports.hpp"

#include <catch2/catch.hpp>

#include <sys/socket.h>

#include <optional>
#include <string>
#include <thread>

using namespace godwit;
using namespace std::chrono_literals;

namespace {

std::string at(std::uint16_t port) {
  return "tcp://127.0.0.1:" + std::to_string(port);
}

/// Listens on loopback, and gives the port.
std::uint16_t listen_somewhere(int socket) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof where;
  REQUIRE(::bind(socket, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0);
  REQUIRE(::listen(socket, 1) == 0);
  REQUIRE(::getsockname(socket, reinterpret_cast<sockaddr*>(&where), &size) == 0);
  return ntohs(where.sin_port);
}

/// A program that says something to who connects, once, and hangs up.
class talker {
 public:
  explicit talker(std::string words) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    port_ = listen_somewhere(socket_);
    thread_ = std::thread([this, words = std::move(words)] {
      const int client = ::accept(socket_, nullptr, nullptr);
      if (client < 0)
        return;
      static_cast<void>(::send(client, words.data(), words.size(), MSG_NOSIGNAL));
      ::close(client);
    });
  }
  ~talker() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  std::uint16_t port() const { return port_; }

 private:
  int socket_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

bool answered(std::string words) {
  const talker one(std::move(words));
  return speaks_zmtp(at(one.port()), 20s);
}

} // namespace

TEST_CASE("a program that greets as ZeroMQ does is one, and nobody else is") {
  // ZMTP 3.1, section "greeting": signature, version, mechanism, padding.
  const std::string signature = std::string("\xff\0\0\0\0\0\0\0\x01\x7f", 10);
  CHECK(answered(signature + "\x03"));
  CHECK_FALSE(answered(""));
  CHECK_FALSE(answered(signature.substr(0, 9)));
  CHECK_FALSE(answered("HTTP/1.1 400 Bad Request\r\n\r\n"));
  CHECK_FALSE(speaks_zmtp(at(free_ports(1)[0]), 20s));
  CHECK_FALSE(speaks_zmtp("", 20s));
  CHECK_FALSE(speaks_zmtp("tcp://127.0.0.1:*", 20s));
}

TEST_CASE("a program that says nothing is waited for only so long") {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK_FALSE(speaks_zmtp(at(listen_somewhere(socket)), 50ms));
  ::close(socket);
}
