#include "services/http/error_response.hpp"

#include <nlohmann/json.hpp>

namespace godwit::http {

std::string_view error_type(int status) {
  switch (status) {
  case 401:
    return "authentication_error";
  case 403:
    return "permission_error";
  case 404:
    return "not_found_error";
  case 409:
    return "conflict_error";
  case 429:
    return "rate_limit_error";
  case 503:
    return "unavailable_error";
  case 529:
    return "overloaded_error";
  default:
    return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

response error_response(int status, std::string_view code, std::string_view message, std::string_view param) {
  // Ordered, so that the body reads as the API's page writes it.
  nlohmann::ordered_json error{
    {"type", error_type(status)}, {"code", std::string(code)}, {"message", std::string(message)}};
  if (!param.empty())
    error["param"] = std::string(param);
  response out;
  out.status = status;
  out.fields.emplace_back("Content-Type", "application/json");
  out.body = nlohmann::ordered_json{{"error", std::move(error)}}.dump(
    -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return out;
}

} // namespace godwit::http
