#include "services/api/routes.hpp"

#include <array>

namespace godwit {

namespace {

struct entry {
  std::string_view method;
  std::string_view before; ///< of the path's id
  std::string_view after;  ///< of the path's id
  bool has_id;
  route call;
};

constexpr std::array table{
  entry{"GET", "/healthz", "", false, route::healthz},
  entry{"GET", "/readyz", "", false, route::readyz},
  entry{"GET", "/metrics", "", false, route::metrics},
  entry{"GET", "/v1/nodes", "", false, route::nodes},
  entry{"POST", "/v1/nodes/", "/drain", true, route::node_drain},
  entry{"GET", "/v1/actors", "", false, route::actors},
  entry{"POST", "/v1/actors/", "/trace", true, route::actor_trace},
  entry{"GET", "/v1/models", "", false, route::models},
  entry{"GET", "/v1/models/", "", true, route::model},
  entry{"POST", "/v1/chat/completions", "", false, route::chat_completion},
  entry{"GET", "/v1/sessions", "", false, route::session_list},
  entry{"POST", "/v1/sessions", "", false, route::session_create},
  entry{"GET", "/v1/sessions/", "", true, route::session_info},
  entry{"DELETE", "/v1/sessions/", "", true, route::session_erase},
  entry{"POST", "/v1/sessions/", "/messages", true, route::session_message},
  entry{"GET", "/v1/sessions/", "/events", true, route::session_events},
  entry{"GET", "/v1/sessions/", "/transcript", true, route::session_transcript},
  entry{"POST", "/v1/sessions/", "/cancel", true, route::session_cancel},
  entry{"POST", "/v1/sessions/", "/fork", true, route::session_fork},
  entry{"POST", "/v1/sessions/", "/suspend", true, route::session_suspend},
  entry{"POST", "/v1/sessions/", "/pin", true, route::session_pin},
  entry{"DELETE", "/v1/sessions/", "/pin", true, route::session_unpin},
  entry{"POST", "/v1/sessions/", "/migrate", true, route::session_migrate},
};

/// The id in a path that an entry's pattern fits. Only a model's id may have slashes in it.
std::optional<std::string_view> match(const entry& candidate, std::string_view path) {
  if (!candidate.has_id)
    return path == candidate.before ? std::optional<std::string_view>("") : std::nullopt;
  if (!path.starts_with(candidate.before) || !path.ends_with(candidate.after)
      || path.size() <= candidate.before.size() + candidate.after.size())
    return std::nullopt;
  const auto id =
    path.substr(candidate.before.size(), path.size() - candidate.before.size() - candidate.after.size());
  if (id.find('/') != std::string_view::npos && candidate.call != route::model)
    return std::nullopt;
  return id;
}

} // namespace

route_match find_route(std::string_view method, std::string_view path) {
  route_match out;
  for (const auto& candidate : table) {
    const auto id = match(candidate, path);
    if (!id)
      continue;
    out.pattern = candidate.before;
    if (candidate.has_id)
      out.pattern.append("{id}").append(candidate.after);
    // HTTP wants HEAD wherever GET is; the server leaves the body out. A stream would have no end to wait
    // for.
    const auto has_head = candidate.method == "GET" && candidate.call != route::session_events;
    out.allow.append(out.allow.empty() ? "" : ", ").append(candidate.method).append(has_head ? ", HEAD" : "");
    if (candidate.method == method || (has_head && method == "HEAD")) {
      out.call = candidate.call;
      out.id = *id;
    }
  }
  return out;
}

} // namespace godwit
