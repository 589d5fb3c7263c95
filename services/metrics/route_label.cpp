#include "services/metrics/route_label.hpp"

#include <algorithm>
#include <array>

namespace godwit {

namespace {

constexpr auto routes = std::to_array<std::string_view>({
  "/healthz",
  "/readyz",
  "/metrics",
  "/v1/actors",
  "/v1/chat/completions",
  "/v1/models",
  "/v1/models/{id}",
  "/v1/nodes",
  "/v1/nodes/{id}/drain",
  "/v1/route/{id}",
  "/v1/sessions",
  "/v1/sessions/{id}",
  "/v1/sessions/{id}/cancel",
  "/v1/sessions/{id}/events",
  "/v1/sessions/{id}/fork",
  "/v1/sessions/{id}/messages",
  "/v1/sessions/{id}/migrate",
  "/v1/sessions/{id}/pin",
  "/v1/sessions/{id}/suspend",
  "/v1/sessions/{id}/transcript",
});

constexpr std::array<std::string_view, 7> methods{"GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"};

/// Cuts the first part off: "a/b" gives "a" and leaves "b".
std::string_view take_part(std::string_view& rest) {
  const auto part = rest.substr(0, rest.find('/'));
  rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  return part;
}

bool fits(std::string_view route, std::string_view path) {
  if (std::count(route.begin(), route.end(), '/') != std::count(path.begin(), path.end(), '/'))
    return false;
  while (!route.empty()) {
    const auto wanted = take_part(route);
    const auto given = take_part(path);
    if (wanted == "{id}" ? given.empty() : wanted != given)
      return false;
  }
  return true;
}

} // namespace

std::string_view route_label(std::string_view path) {
  const auto* found =
    std::find_if(routes.begin(), routes.end(), [&](auto route) { return fits(route, path); });
  return found == routes.end() ? "other" : *found;
}

std::string_view method_label(std::string_view method) {
  const auto* found = std::find(methods.begin(), methods.end(), method);
  return found == methods.end() ? "other" : *found;
}

} // namespace godwit
