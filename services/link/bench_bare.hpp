#pragma once

#include "services/link/bench.hpp"
#include "services/link/keys.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace godwit::link::bench {

using bench_clock = std::chrono::steady_clock;

/// Microseconds since a moment.
inline double since(bench_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(bench_clock::now() - begin).count();
}

/// @param values reordered
double quantile(std::vector<double>& values, double which);

/// The part of bare ZeroMQ in the other process: echoes what it gets on one socket, counts on two others.
/// Ends with the object.
class bare_server {
 public:
  /// @param keys nothing: plain
  static std::unique_ptr<bare_server> start(const node_keys* keys);
  virtual ~bare_server() = default;
  /// Endpoints of echo, letters and pages, with spaces between.
  virtual std::string endpoints() const = 0;
};

/// Its part in this process.
class bare_client {
 public:
  static std::unique_ptr<bare_client> connect(
    const std::string& endpoints, const node_keys* keys, const public_key* server);
  virtual ~bare_client() = default;

  /// Times of round trips, in microseconds. @param bytes of a frame
  virtual std::vector<double> requests(std::size_t count, std::size_t bytes) = 0;
  /// Seconds for so many frames one way, until the last has arrived.
  virtual double letters(std::size_t count, std::size_t bytes) = 0;
  /// Seconds for so many pages. @param busy gets times of round trips made meanwhile by another thread
  virtual double pages(
    std::size_t count, std::size_t bytes, std::size_t request_bytes, std::vector<double>* busy) = 0;
};

} // namespace godwit::link::bench
