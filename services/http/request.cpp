#include "services/http/exchange.hpp"

#include "services/http/text.hpp"

namespace godwit::http {

std::optional<std::string_view> request::field(std::string_view name) const {
  for (const auto& [key, value] : fields)
    if (same_token(key, name))
      return value;
  return std::nullopt;
}

std::optional<std::string_view> request::parameter(std::string_view name) const {
  for (const auto& [key, value] : query)
    if (key == name)
      return value;
  return std::nullopt;
}

} // namespace godwit::http
