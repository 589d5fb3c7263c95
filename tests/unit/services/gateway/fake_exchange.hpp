#pragma once

#include "services/http/exchange.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace godwit::test {

/// What a client has seen of the answer to one request. Outlives the exchange.
struct client_view {
  std::optional<http::response> answer; ///< when it came in one piece
  int status = 0;                       ///< of a stream
  http::headers fields;
  std::string bytes; ///< of a stream, as far as the socket took them
  bool ended = false;
  bool dropped = false; ///< the exchange is gone

  bool reads = true; ///< the socket takes every write at once
  std::deque<std::pair<std::string, http::exchange::written>> waiting;
  std::function<void()> on_leave;
  bool left = false;

  /// The socket takes the first write that waits.
  void take() {
    auto [text, done] = std::move(waiting.front());
    waiting.pop_front();
    bytes += text;
    done(true);
  }

  void leave() {
    left = true;
    if (auto callback = std::exchange(on_leave, nullptr))
      callback();
    for (auto& [text, done] : std::exchange(waiting, {}))
      done(false);
  }
};

/// An exchange without a socket.
class fake_exchange final : public http::exchange {
 public:
  fake_exchange(http::request request, std::shared_ptr<client_view> view)
    : request_(std::move(request)), view_(std::move(view)) {}
  ~fake_exchange() override { view_->dropped = true; }

  const http::request& request() const override { return request_; }

  void respond(http::response answer) override {
    if (!view_->answer && view_->status == 0)
      view_->answer = std::move(answer);
  }

  void begin(int status, http::headers fields) override {
    view_->status = status;
    view_->fields = std::move(fields);
  }

  void write(std::string bytes, written done) override {
    if (view_->left)
      return done(false);
    if (!view_->reads) {
      view_->waiting.emplace_back(std::move(bytes), std::move(done));
      return;
    }
    view_->bytes += bytes;
    done(true);
  }

  void end() override { view_->ended = true; }

  void on_leave(std::function<void()> callback) override {
    if (view_->left)
      return callback();
    view_->on_leave = std::move(callback);
  }

 private:
  http::request request_;
  std::shared_ptr<client_view> view_;
};

} // namespace godwit::test
