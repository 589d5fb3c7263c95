#include "tools/godwit/client.hpp"

#include <httplib.h>

#include <chrono>

namespace godwit::cli {

using nlohmann::ordered_json;

struct client::state {
  std::string url;
  httplib::Client http;

  explicit state(const std::string& address) : url(address), http(address) {
    http.set_connection_timeout(std::chrono::seconds(5));
    // A node sends a heartbeat at least every 15 s on a stream; silence for longer is a dead one.
    http.set_read_timeout(std::chrono::seconds(60));
    http.set_write_timeout(std::chrono::seconds(10));
    http.set_keep_alive(true);
    http.set_tcp_nodelay(true);
  }

  tl::unexpected<error> unreachable(httplib::Error why) const {
    return fail(errc::unavailable, what_failed(why));
  }

  std::string what_failed(httplib::Error why) const {
    switch (why) {
    case httplib::Error::Read:
      return url
             + " closed the connection or was silent for a minute before its answer was whole; is it a node, "
               "and does it still run?";
    case httplib::Error::Write:
      return "the request could not be sent to " + url + " to its end; does the node there still run?";
    default:
      return "no connection to " + url + "; is a node running there? (--url or GODWIT_URL names another)";
    }
  }
};

namespace {

/// The node's own words for a failure, or the status if it had none.
tl::unexpected<error> refused(int status, const std::string& body) {
  const auto json = ordered_json::parse(body, nullptr, false);
  error out{errc::internal, "the node answered with status " + std::to_string(status), {}, {}};
  if (json.is_object() && json.contains("error") && json["error"].is_object()) {
    out.message = json["error"].value("message", out.message);
    out.reason = json["error"].value("code", "");
    if (json["error"].contains("param") && json["error"]["param"].is_string())
      out.param = json["error"]["param"].get<std::string>();
  }
  return tl::unexpected<error>(std::move(out));
}

httplib::Request make_request(
  const std::string& method, const std::string& path, const ordered_json& body, const std::string& key) {
  httplib::Request request;
  request.method = method;
  request.path = path;
  if (!body.is_null()) {
    request.body = body.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    request.set_header("Content-Type", "application/json");
  }
  if (!key.empty())
    request.set_header("Idempotency-Key", key);
  return request;
}

bool success(int status) {
  return status >= 200 && status < 300;
}

} // namespace

client::client(std::unique_ptr<state> inner) : state_(std::move(inner)) {}
client::~client() = default;

result<std::unique_ptr<client>> client::connect(const std::string& url) {
  if (!url.starts_with("http://") || url.size() < 8)
    return fail(
      errc::invalid_argument, "'" + url + "' is not a node's address: http://HOST:PORT is expected");
  auto inner = std::make_unique<state>(url.ends_with('/') ? url.substr(0, url.size() - 1) : url);
  if (!inner->http.is_valid())
    return fail(
      errc::invalid_argument, "'" + url + "' is not a node's address: http://HOST:PORT is expected");
  return std::unique_ptr<client>(new client(std::move(inner)));
}

result<reply> client::call(
  const std::string& method, const std::string& path, const ordered_json& body, const std::string& key) {
  auto answer = state_->http.send(make_request(method, path, body, key));
  if (!answer)
    return state_->unreachable(answer.error());
  if (!success(answer->status))
    return refused(answer->status, answer->body);
  if (answer->body.empty())
    return reply{answer->status, nullptr};
  auto json = ordered_json::parse(answer->body, nullptr, false);
  if (json.is_discarded())
    return fail(errc::corrupt, "the answer of " + state_->url + " is not JSON; is it a Godwit node?");
  return reply{answer->status, std::move(json)};
}

result<void> client::stream(const std::string& method, const std::string& path, const ordered_json& body,
  const std::string& key, std::function<bool(const sse_event&)> on_event) {
  bool wanted = true;
  bool well_formed = true;
  int status = 0;
  std::string plain;
  sse_reader reader([&](const sse_event& event) { wanted = wanted && on_event(event); });
  auto request = make_request(method, path, body, key);
  request.set_header("Accept", "text/event-stream");
  request.response_handler = [&](const httplib::Response& head) {
    status = head.status;
    return true;
  };
  request.content_receiver = [&](const char* bytes, std::size_t size, std::uint64_t, std::uint64_t) {
    if (success(status))
      well_formed = reader.feed({bytes, size});
    else if (plain.size() < 65536)
      plain.append(bytes, size);
    return wanted && well_formed;
  };
  auto answer = state_->http.send(request);
  if (!well_formed)
    return fail(
      errc::corrupt, "the answer of " + state_->url + " is not a stream of events; is it a Godwit node?");
  if (!answer && wanted)
    return state_->unreachable(answer.error());
  if (status != 0 && !success(status))
    return refused(status, plain);
  return {};
}

} // namespace godwit::cli
