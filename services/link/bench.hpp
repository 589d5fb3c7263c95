#pragma once

#include "messages/result.hpp"

#include <cstddef>

namespace godwit::link {

struct link_bench_options {
  bool curve = true; ///< keys on all sockets, also on those of the comparison
  std::size_t rounds = 5;
  std::size_t requests = 2000;  ///< of a round
  std::size_t letters = 50'000; ///< without an answer, of a round
  std::size_t pages = 200;      ///< of a round
  std::size_t page_bytes = std::size_t{1} << 20;
  std::size_t letter_bytes = 200; ///< of a letter's words; the comparison carries the header's bytes as well
};

/// One side of the comparison: medians over the rounds.
struct link_rates {
  double request_p50_us =
    0; ///< from handing a request over until its answer is there, another thread waiting for it
  double request_p99_us = 0;
  double letters_per_s = 0;
  double bulk_bytes_per_s = 0;
  double busy_p50_us = 0; ///< a request's time while pages are sent
  double busy_p99_us = 0;
};

struct link_bench {
  link_rates link;
  link_rates bare;          ///< ZeroMQ alone: the same bytes and keys, no more
  double actors_p50_us = 0; ///< a request from an actor to one in the other process
  double actors_p99_us = 0;
  double local_p50_us = 0; ///< a request from an actor to one beside it
};

/// Measures the link between this process and a fork of it on loopback, with bare ZeroMQ in turns. Call it
/// before any thread was started.
/// @returns `io` or `unavailable` if the two processes do not find each other
result<link_bench> measure_link(const link_bench_options& options);

} // namespace godwit::link
