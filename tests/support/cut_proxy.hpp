#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace godwit::test {

/// A relay between a client and a server on loopback that breaks connections at chosen bytes, so that what a
/// client cannot know becomes a case that can be repeated.
class cut_proxy {
 public:
  explicit cut_proxy(std::uint16_t server);
  ~cut_proxy();

  cut_proxy(const cut_proxy&) = delete;
  cut_proxy& operator=(const cut_proxy&) = delete;

  std::uint16_t port() const { return port_; }

  /// From now on, of what clients send, only so many bytes are passed on; then that connection ends, on both
  /// sides, and later ones are whole again.
  /// @param gate_stays_open false: from then on connections are refused, as after close_gate()
  void cut_requests_after(std::size_t bytes, bool gate_stays_open = true) {
    arm(true, bytes, gate_stays_open);
  }
  /// The same for what the server sends. With 0 the answer is lost after the server has given it.
  void cut_answers_after(std::size_t bytes, bool gate_stays_open = true) {
    arm(false, bytes, gate_stays_open);
  }
  /// True once a connection was cut.
  bool cut() const { return cut_; }

  /// Refuses connections, and ends the present ones before it returns.
  void close_gate();
  void open_gate() { open_ = true; }
  /// Passes nothing on, and says nothing.
  void swallow(bool on) { swallow_ = on; }

  std::size_t connections() const { return connections_; }

 private:
  void arm(bool requests, std::size_t bytes, bool gate_stays_open);
  void accept_loop();
  void relay_loop(int client, std::size_t generation);
  /// @returns false when the connection is to end
  bool pass(int from, int to, bool requests);

  std::uint16_t server_;
  std::uint16_t port_ = 0;
  int listening_ = -1;
  std::atomic<bool> ending_{false};
  std::atomic<bool> open_{true};
  std::atomic<bool> swallow_{false};
  std::atomic<bool> cut_{false};
  std::atomic<std::size_t> connections_{0};
  std::atomic<std::size_t> live_{0};
  std::atomic<std::size_t> generation_{0}; ///< connections of earlier ones end

  std::mutex mutex_; ///< of the next four
  bool armed_ = false;
  bool requests_ = false;
  std::size_t left_ = 0;
  bool stays_open_ = true;

  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

} // namespace godwit::test
