#include "services/link/bench_bare.hpp"

#include <zmq.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <sstream>
#include <thread>

namespace godwit::link::bench {

namespace {

constexpr int letters_at_once = 1000;
constexpr int pages_at_once = 8;
constexpr std::string_view last = "last";

zmq::const_buffer raw(const std::array<std::byte, 32>& key) {
  return {key.data(), key.size()};
}

zmq::socket_t make(zmq::context_t& context, zmq::socket_type type, int messages, const node_keys* keys,
  const public_key* server) {
  zmq::socket_t socket(context, type);
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::sndhwm, messages);
  socket.set(zmq::sockopt::rcvhwm, messages);
  socket.set(zmq::sockopt::rcvtimeo, 60'000);
  socket.set(zmq::sockopt::affinity, std::uint64_t{messages == pages_at_once ? 2U : 1U});
  if (keys != nullptr) {
    socket.set(zmq::sockopt::curve_secretkey, raw(keys->secret.bytes()));
    if (server == nullptr) {
      socket.set(zmq::sockopt::curve_server, 1);
    } else {
      socket.set(zmq::sockopt::curve_publickey, raw(keys->open.bytes));
      socket.set(zmq::sockopt::curve_serverkey, raw(server->bytes));
    }
  }
  return socket;
}

class server final : public bare_server {
 public:
  explicit server(const node_keys* keys) {
    const std::array messages{letters_at_once, letters_at_once, pages_at_once};
    for (std::size_t i = 0; i < sockets_.size(); ++i) {
      sockets_[i] = make(context_, zmq::socket_type::router, messages[i], keys, nullptr);
      sockets_[i].set(zmq::sockopt::rcvtimeo, 200);
      sockets_[i].bind("tcp://127.0.0.1:*");
      endpoints_ += (i == 0 ? "" : " ") + sockets_[i].get(zmq::sockopt::last_endpoint);
    }
    for (std::size_t i = 0; i < sockets_.size(); ++i)
      threads_[i] = std::thread([this, i] { i == 0 ? echo(sockets_[i]) : count(sockets_[i]); });
  }
  ~server() override {
    ending_ = true;
    for (auto& thread : threads_)
      thread.join();
  }
  std::string endpoints() const override { return endpoints_; }

 private:
  void echo(zmq::socket_t& socket) const {
    zmq::message_t id;
    zmq::message_t frame;
    while (!ending_) {
      if (!socket.recv(id) || !socket.recv(frame))
        continue;
      socket.send(id, zmq::send_flags::sndmore);
      socket.send(frame, zmq::send_flags::none);
    }
  }

  void count(zmq::socket_t& socket) const {
    zmq::message_t id;
    zmq::message_t frame;
    while (!ending_) {
      if (!socket.recv(id))
        continue;
      do
        (void)socket.recv(frame);
      while (frame.more());
      if (frame.to_string_view() != last)
        continue;
      socket.send(id, zmq::send_flags::sndmore);
      socket.send(frame, zmq::send_flags::none);
    }
  }

  zmq::context_t context_{2};
  std::array<zmq::socket_t, 3> sockets_;
  std::array<std::thread, 3> threads_;
  std::string endpoints_;
  std::atomic<bool> ending_{false};
};

class client final : public bare_client {
 public:
  client(const std::string& endpoints, const node_keys* keys, const public_key* server) {
    std::istringstream words(endpoints);
    const std::array messages{letters_at_once, letters_at_once, pages_at_once};
    for (std::size_t i = 0; i < sockets_.size(); ++i) {
      std::string endpoint;
      words >> endpoint;
      sockets_[i] = make(context_, zmq::socket_type::dealer, messages[i], keys, server);
      sockets_[i].connect(endpoint);
    }
  }

  std::vector<double> requests(std::size_t count, std::size_t bytes) override {
    std::vector<double> times;
    const std::vector<std::byte> content(bytes, std::byte{7});
    zmq::message_t answer;
    for (std::size_t i = 0; i < count; ++i) {
      const auto begin = bench_clock::now();
      sockets_[0].send(zmq::const_buffer(content.data(), content.size()), zmq::send_flags::none);
      if (!sockets_[0].recv(answer))
        break;
      times.push_back(since(begin));
    }
    return times;
  }

  double letters(std::size_t count, std::size_t bytes) override {
    const std::vector<std::byte> content(bytes, std::byte{7});
    const auto begin = bench_clock::now();
    for (std::size_t i = 0; i < count; ++i)
      sockets_[1].send(zmq::const_buffer(content.data(), content.size()), zmq::send_flags::none);
    finish(sockets_[1]);
    return since(begin) / 1e6;
  }

  double pages(
    std::size_t count, std::size_t bytes, std::size_t request_bytes, std::vector<double>* busy) override {
    std::vector<std::byte> page(bytes, std::byte{7});
    const std::vector<std::byte> head(request_bytes, std::byte{7});
    std::atomic<bool> done{false};
    std::thread beside;
    if (busy != nullptr)
      beside = std::thread([&] {
        while (!done) {
          const auto some = requests(1, request_bytes);
          busy->insert(busy->end(), some.begin(), some.end());
        }
      });
    const auto begin = bench_clock::now();
    for (std::size_t i = 0; i < count; ++i) {
      sockets_[2].send(zmq::const_buffer(head.data(), head.size()), zmq::send_flags::sndmore);
      // Without a copy, as the link does.
      sockets_[2].send(zmq::message_t(page.data(), page.size(), [](void*, void*) {}), zmq::send_flags::none);
    }
    finish(sockets_[2]);
    const auto took = since(begin) / 1e6;
    done = true;
    if (beside.joinable())
      beside.join();
    return took;
  }

 private:
  static void finish(zmq::socket_t& socket) {
    socket.send(zmq::buffer(last), zmq::send_flags::none);
    zmq::message_t answer;
    (void)socket.recv(answer);
  }

  zmq::context_t context_{2};
  std::array<zmq::socket_t, 3> sockets_;
};

} // namespace

double quantile(std::vector<double>& values, double which) {
  if (values.empty())
    return 0;
  const auto place =
    values.begin() + static_cast<std::ptrdiff_t>(which * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

std::unique_ptr<bare_server> bare_server::start(const node_keys* keys) {
  return std::make_unique<server>(keys);
}

std::unique_ptr<bare_client> bare_client::connect(
  const std::string& endpoints, const node_keys* keys, const public_key* server) {
  return std::make_unique<client>(endpoints, keys, server);
}

} // namespace godwit::link::bench
