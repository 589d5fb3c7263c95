#pragma once

#include "services/link/counters.hpp"
#include "services/link/frame_reader.hpp"
#include "services/link/keys.hpp"

#include <zmq.hpp>

#include <vector>

namespace godwit::link::detail {

/// Says who may connect to a link's sockets (the handler of rfc.zeromq.org/spec/27), and counts who came.
class doorkeeper {
 public:
  /// Before any socket of the context is bound.
  doorkeeper(zmq::context_t& context, std::size_t most_frames, link_counters& counters);

  /// Counts a bound socket's connections from now on.
  void watch(zmq::socket_t& door);

  /// Its own sockets: serve() has something to do when one of them has.
  std::vector<zmq::socket_t*> sockets();
  /// Answers and counts all that has come. @param allowed null: whoever is on loopback
  void serve(const allow_list* allowed);

 private:
  void answer(const allow_list* allowed);
  void count(zmq::socket_t& monitor);

  zmq::context_t& context_;
  link_counters& counters_;
  frame_reader reader_;
  zmq::socket_t zap_;
  std::vector<zmq::socket_t> monitors_;
};

} // namespace godwit::link::detail
