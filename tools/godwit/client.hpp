#pragma once

#include "messages/result.hpp"
#include "tools/godwit/sse_reader.hpp"

#include <nlohmann/json.hpp>

#include <functional>
#include <memory>
#include <string>

namespace godwit::cli {

/// What a node answered.
struct reply {
  int status = 0;
  nlohmann::ordered_json body;
};

/// Speaks to one node over HTTP. Not thread-safe: one client a thread.
class client {
 public:
  /// @param url http://HOST:PORT. @returns `invalid_argument` for anything else
  static result<std::unique_ptr<client>> connect(const std::string& url);

  ~client();
  client(const client&) = delete;
  client& operator=(const client&) = delete;

  /// Sends a request and waits for the whole answer.
  /// @param body sent as JSON unless null; @param key the Idempotency-Key header unless empty
  /// @returns the answer of a 2xx status; a failure carries the node's own message
  result<reply> call(const std::string& method, const std::string& path,
    const nlohmann::ordered_json& body = nullptr, const std::string& key = {});

  /// Sends a request whose answer is a stream of events, and hands them over until the stream ends or
  /// `on_event` says false.
  result<void> stream(const std::string& method, const std::string& path, const nlohmann::ordered_json& body,
    const std::string& key, std::function<bool(const sse_event&)> on_event);

 private:
  struct state;
  explicit client(std::unique_ptr<state> inner);
  std::unique_ptr<state> state_;
};

} // namespace godwit::cli
