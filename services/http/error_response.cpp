#include "services/http/error_response.hpp"

#include "messages/error_status.hpp"

#include <nlohmann/json.hpp>

namespace godwit::http {

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
