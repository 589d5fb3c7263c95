#include "services/api/error_response.hpp"

#include "services/http/error_response.hpp"

#include <nlohmann/json.hpp>

#include <string_view>

namespace godwit {

std::string error_json(const error& failure) {
  return error_response(failure, {}).body;
}

http::response error_response(const error& failure, std::chrono::seconds retry_after) {
  const auto status = status_of(failure.code);
  if (is_private(failure.code))
    return http::error_response(status, to_string(failure.code), private_message);
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
