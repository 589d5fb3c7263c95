#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

namespace godwit::link::detail {

/// Waits for many descriptors with one call of the system's, however many they are (epoll). zmq::poll() asks
/// every socket before and behind each wait, a call of the system's each: in a mesh where each node has a
/// handful of sockets for each peer that was most of what an idle node did.
///
/// Of a ZeroMQ socket it is given ZMQ_FD, which says that the socket has commands to carry out, not that a
/// message is there: whoever is told of one asks the socket, which takes the sign away, and asks it again
/// before the next wait when it has been used since (api.zeromq.org/4-3:zmq-getsockopt).
class socket_watch {
 public:
  /// What a descriptor is known by.
  using mark = std::uint64_t;

  socket_watch();
  ~socket_watch();
  socket_watch(const socket_watch&) = delete;
  socket_watch& operator=(const socket_watch&) = delete;

  /// @returns false when the system has no room for it
  bool add(int descriptor, mark which);
  /// Before the descriptor is closed.
  void remove(int descriptor);

  /// Waits until one of them has something, a signal comes, or the time is over. Not all that have something
  /// need be told of: the others are next time.
  std::span<const mark> wait(std::chrono::milliseconds time);

 private:
  int descriptor_;
  std::vector<mark> ready_; ///< kept between calls so that it needs no memory each time
};

} // namespace godwit::link::detail
