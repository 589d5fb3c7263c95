#pragma once

#include "messages/result.hpp"
#include "services/http/exchange.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace godwit::http {

/// An answer that was given, for metrics and logs.
struct answered {
  std::string_view method; ///< empty if the request was refused before it could be read
  std::string_view path;   ///< as the client wrote it: not for labels, not for logs
  int status = 0;          ///< 0 if the connection was gone before there was one
  std::chrono::duration<double> took{};
};

/// What a server allows. Every wait has an end and everything that grows has a limit.
struct server_options {
  std::string address = "127.0.0.1"; ///< an IP address, or "localhost"
  std::uint16_t port = 0;            ///< 0 picks a free one
  unsigned threads = 1;
  std::size_t max_connections = 2048;               ///< one more is answered 503 and closed
  std::size_t head_bytes = 16 * 1024;               ///< request line and fields; more is 431
  std::size_t body_bytes = 32 * 1024 * 1024;        ///< more is 413
  std::size_t body_bytes_total = 512 * 1024 * 1024; ///< bodies of all connections together; more is 503
  std::size_t queued_bytes = 4 * 1024 * 1024;       ///< of one stream, waiting for a slow reader

  std::chrono::milliseconds head_time{10'000};   ///< from a request's first byte to the end of its head
  std::chrono::milliseconds body_grace{10'000};  ///< for a body, and beyond that one second for every
  std::size_t body_bytes_per_second = 64 * 1024; ///< as many bytes that have arrived
  std::chrono::milliseconds write_time{30'000};  ///< without a byte taken by the client
  std::chrono::milliseconds idle_time{75'000};   ///< between two requests
  std::chrono::milliseconds linger_time{
    3'000}; ///< for reading on after a refusal, so that the client sees it

  std::function<void(const answered&)> observe = {}; ///< called on a server thread after every answer
};

struct server_counts {
  std::uint64_t open = 0;        ///< connections now
  std::uint64_t accepted = 0;    ///< connections ever
  std::uint64_t turned_away = 0; ///< connections over the limit
  std::uint64_t timed_out = 0;   ///< connections closed for being too slow
  std::uint64_t body_bytes = 0;  ///< held by requests now
};

/// An HTTP/1.1 server on threads of its own. Requests reach the handler whole; answers go out as the handler
/// gives them. Keeps connections alive and takes pipelined requests, one at a time.
class server {
 public:
  /// Binds, listens, and answers from the time it returns.
  /// @returns `invalid_argument` for an address that is none, `io` with the system's word when binding fails
  static result<std::unique_ptr<server>> start(server_options options, std::shared_ptr<handler> handler);

  virtual ~server() = default;

  /// The port that it listens on.
  virtual std::uint16_t port() const = 0;
  virtual server_counts counts() const = 0;

  /// Closes the listening socket and idle connections; running exchanges go on and are the last of their
  /// connections.
  virtual void stop_accepting() = 0;
  /// Stops accepting, waits for running exchanges until the time is over, closes what is left, and ends the
  /// threads. The handler is not called afterwards. @returns how many connections had to be closed
  virtual std::size_t stop(std::chrono::milliseconds time) = 0;
};

} // namespace godwit::http
