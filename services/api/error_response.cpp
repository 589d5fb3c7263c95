#include "services/api/error_response.hpp"

#include "services/http/error_response.hpp"

#include <nlohmann/json.hpp>

#include <string_view>

namespace godwit {

int status_of(errc code) {
  switch (code) {
  case errc::invalid_argument:
  case errc::unsupported:
  case errc::corrupt:
    return 400;
  case errc::permission:
    return 403;
  case errc::not_found:
    return 404;
  case errc::conflict:
  case errc::cancelled:
    return 409;
  case errc::gone:
    return 410;
  case errc::too_large:
    return 413;
  case errc::unprocessable:
    return 422;
  case errc::internal:
  case errc::io:
  case errc::quarantined:
    return 500;
  // Another owner has the session, or it died: the next try finds the new one.
  case errc::stale_sequence:
  case errc::stale_epoch:
  case errc::peer_lost:
  case errc::unavailable:
  case errc::draining:
    return 503;
  case errc::deadline:
    return 504;
  case errc::overloaded:
  case errc::resource_exhausted:
    return 529;
  }
  return 500;
}

bool is_private(errc code) {
  return code == errc::internal || code == errc::io;
}

std::string error_json(const error& failure) {
  return error_response(failure, {}).body;
}

http::response error_response(const error& failure, std::chrono::seconds retry_after) {
  const auto status = status_of(failure.code);
  if (is_private(failure.code))
    return http::error_response(
      status, to_string(failure.code), "the node failed on this request; its log says why");
  auto out = http::error_response(status,
    failure.reason.empty() ? to_string(failure.code) : std::string_view(failure.reason), failure.message,
    failure.param);
  if (status == 503 || status == 529)
    out.fields.emplace_back("Retry-After", std::to_string(retry_after.count()));
  return out;
}

std::string gone_json(const error& failure, const std::string& session, const std::string& oldest) {
  auto body = nlohmann::ordered_json::parse(error_json(failure));
  body["error"]["oldest"] = oldest.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(oldest);
  body["error"]["snapshot"] = "/v1/sessions/" + session + "/events?snapshot=1";
  return body.dump();
}

http::response json_response(std::string body, int status) {
  return {status, {{"Content-Type", "application/json"}}, std::move(body)};
}

} // namespace godwit
