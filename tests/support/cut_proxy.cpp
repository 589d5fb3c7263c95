#include "tests/support/cut_proxy.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace godwit::test {

namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

bool send_all(int to, const char* bytes, std::size_t count) {
  while (count > 0) {
    const auto sent = ::send(to, bytes, count, MSG_NOSIGNAL);
    if (sent <= 0)
      return false;
    bytes += sent;
    count -= static_cast<std::size_t>(sent);
  }
  return true;
}

/// So that the other side notices at once, with what it was sent in its hands.
void end(int socket) {
  ::shutdown(socket, SHUT_RDWR);
  ::close(socket);
}

} // namespace

cut_proxy::cut_proxy(std::uint16_t server)
  : server_(server), listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  auto address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(listening_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listening_, 64) != 0
      || ::getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("the proxy cannot listen");
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_loop(); });
}

cut_proxy::~cut_proxy() {
  ending_ = true;
  acceptor_.join();
  for (auto& one : threads_)
    one.join();
  ::close(listening_);
}

void cut_proxy::arm(bool requests, std::size_t bytes, bool gate_stays_open) {
  const std::lock_guard lock(mutex_);
  armed_ = true;
  cut_ = false;
  requests_ = requests;
  left_ = bytes;
  stays_open_ = gate_stays_open;
}

void cut_proxy::close_gate() {
  open_ = false;
  ++generation_;
  while (live_ > 0)
    std::this_thread::yield();
}

void cut_proxy::accept_loop() {
  while (!ending_) {
    pollfd one{listening_, POLLIN, 0};
    if (::poll(&one, 1, 10) <= 0)
      continue;
    const int client = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0)
      continue;
    if (!open_) {
      end(client);
      continue;
    }
    ++connections_;
    ++live_;
    threads_.emplace_back(
      [this, client, generation = generation_.load()] { relay_loop(client, generation); });
  }
}

void cut_proxy::relay_loop(int client, std::size_t generation) {
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto address = loopback(server_);
  const int on = 1;
  ::setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  bool good = ::connect(server, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  while (good && !ending_ && generation == generation_) {
    std::array<pollfd, 2> both{{{client, POLLIN, 0}, {server, POLLIN, 0}}};
    if (::poll(both.data(), both.size(), 5) <= 0 || swallow_)
      continue;
    if (both[0].revents != 0)
      good = pass(client, server, true);
    if (good && both[1].revents != 0)
      good = pass(server, client, false);
  }
  end(client);
  end(server);
  --live_;
}

bool cut_proxy::pass(int from, int to, bool requests) {
  std::array<char, 16'384> bytes{};
  const auto got = ::recv(from, bytes.data(), bytes.size(), 0);
  if (got <= 0)
    return false;
  auto count = static_cast<std::size_t>(got);
  bool cuts = false;
  {
    const std::lock_guard lock(mutex_);
    if (armed_ && requests == requests_) {
      cuts = count >= left_;
      count = std::min(count, left_);
      left_ -= count;
      armed_ = !cuts;
      if (cuts && !stays_open_)
        open_ = false;
    }
  }
  const bool sent = send_all(to, bytes.data(), count);
  if (cuts)
    cut_ = true;
  return sent && !cuts;
}

} // namespace godwit::test
