#pragma once

#include "services/http/exchange.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace godwit::http {

struct answer_options {
  bool http10 = false;    ///< the client spoke HTTP/1.0, which has no chunks
  bool keep_alive = true; ///< the connection may stay open afterwards
  std::size_t queued = 0; ///< bytes of a stream that may wait for the socket
};

/// The state of one exchange: what the handler said and the connection has not sent yet. No socket in it. The
/// handler's side may be called from any thread, the connection's side from the connection's strand;
/// callbacks run without a lock held.
class answer {
 public:
  struct piece {
    std::string bytes;
    exchange::written done;
    std::size_t cost = 0; ///< what it takes of the queue's limit
  };

  /// @param wake told, on any thread, that there is something to do for the connection
  answer(http::request request, answer_options options, std::function<void()> wake);

  /// The handler's side of `state`. When the last copy goes, the answer is completed as `exchange` promises.
  static std::shared_ptr<exchange> handle(std::shared_ptr<answer> state);

  // The handler's side.
  const http::request& request() const { return request_; }
  void respond(http::response answer);
  void begin(int status, http::headers fields);
  void write(std::string bytes, exchange::written done);
  void end();
  void on_leave(std::function<void()> callback);
  void abandon();

  // The connection's side.

  /// The next pieces to send, in order: at least one if there is one, else until `bytes` are reached.
  std::vector<piece> take(std::size_t bytes);
  /// Reports what became of pieces that were taken.
  void sent(std::vector<piece> pieces, bool arrived);
  /// True once nothing follows what was taken.
  bool complete() const;
  /// True if the connection has to be cut now, whatever still waits.
  bool cut() const;
  /// True if the connection may be used again after the answer; meant for when it is complete.
  bool keep_alive() const;
  /// The answer's status; 0 while there is none.
  int status() const;
  /// The client's side is at its end: a stream stops, a whole answer can still be given.
  void client_left();
  /// The connection is no more: nothing can be sent. @param by_client the client is told to have left
  void closed(bool by_client);

 private:
  bool accepts_head() const { return status_ == 0 && !closed_; }
  void head(int status, const http::headers& fields, bool chunked, std::size_t length);
  std::vector<piece> drop_stream();

  const http::request request_;
  const answer_options options_;
  const std::function<void()> wake_;
  const bool head_only_;

  mutable std::mutex mutex_;
  std::deque<piece> pieces_;
  std::size_t queued_ = 0; ///< cost of all that was written and not reported as sent
  int status_ = 0;
  bool streaming_ = false; ///< between begin and end
  bool chunks_ = false;    ///< the stream is framed in chunks
  bool keep_alive_;
  bool left_ = false;
  bool closed_ = false;
  bool cut_ = false;
  std::function<void()> leave_;
};

} // namespace godwit::http
