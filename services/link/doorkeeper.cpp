#include "services/link/doorkeeper.hpp"

#include "services/link/zap.hpp"
#include "services/link/zmq_frames.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace godwit::link::detail {

doorkeeper::doorkeeper(zmq::context_t& context, std::size_t most_frames, link_counters& counters)
  : context_(context), counters_(counters), reader_(most_frames, counters),
    zap_(context, zmq::socket_type::rep) {
  zap_.set(zmq::sockopt::linger, 0);
  zap_.bind("inproc://zeromq.zap.01");
}

void doorkeeper::watch(zmq::socket_t& door) {
  const auto where = "inproc://godwit-monitor-" + std::to_string(monitors_.size());
  constexpr int watched = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED;
  if (zmq_socket_monitor(door.handle(), where.c_str(), watched) != 0)
    throw zmq::error_t();
  auto& monitor = monitors_.emplace_back(context_, zmq::socket_type::pair);
  monitor.set(zmq::sockopt::linger, 0);
  monitor.connect(where);
}

std::vector<zmq::socket_t*> doorkeeper::sockets() {
  std::vector<zmq::socket_t*> out{&zap_};
  for (auto& monitor : monitors_)
    out.push_back(&monitor);
  return out;
}

void doorkeeper::serve(const allow_list* allowed) {
  answer(allowed);
  for (auto& monitor : monitors_)
    count(monitor);
}

void doorkeeper::answer(const allow_list* allowed) {
  for (;;) {
    zmq::message_t first;
    if (!zap_.recv(first, zmq::recv_flags::dontwait))
      return;
    const bool fits = reader_.read_behind(zap_, std::move(first));
    std::vector<std::string_view> asked;
    for (const auto& frame : reader_.frames())
      asked.push_back(text(frame));
    const auto verdict = fits ? judge(asked, allowed) : zap_verdict{};
    if (!verdict.accepted)
      link_counters::add(counters_.unknown_keys);
    const auto reply = zap_reply(asked, verdict);
    for (std::size_t i = 0; i < reply.size(); ++i)
      zap_.send(
        zmq::buffer(reply[i]), i + 1 < reply.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
  }
}

void doorkeeper::count(zmq::socket_t& monitor) {
  for (;;) {
    zmq::message_t first;
    if (!monitor.recv(first, zmq::recv_flags::dontwait))
      return;
    std::uint16_t event = 0;
    if (first.size() >= sizeof event)
      std::memcpy(&event, first.data(), sizeof event);
    reader_.read(monitor, first.more());
    // ZeroMQ does not report every handshake that fails: those that do not succeed can be counted. Nor why a
    // connection ends: that its other end left, or sent what is too large.
    link_counters::add(event == ZMQ_EVENT_ACCEPTED       ? counters_.connections
                       : event == ZMQ_EVENT_DISCONNECTED ? counters_.disconnects
                                                         : counters_.handshakes);
  }
}

} // namespace godwit::link::detail
