#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace godwit {

/// The calls of the public API.
enum class route : std::uint8_t {
  healthz,
  readyz,
  metrics,
  nodes,
  node_drain,
  actors,
  actor_trace,
  models,
  model,
  chat_completion,
  session_list,
  session_create,
  session_info,
  session_erase,
  session_message,
  session_events,
  session_transcript,
  session_cancel,
  session_fork,
  session_suspend,
  session_pin,
  session_unpin,
  session_migrate,
};

/// What a method and a path lead to.
struct route_match {
  std::optional<route> call;
  std::string id;      ///< what stands in the path for a session, a model or a node
  std::string pattern; ///< of the path, for logs and metrics: "/v1/sessions/{id}"
  std::string allow;   ///< methods of a known path, as the header Allow lists them; empty for an unknown one
};

/// HEAD leads where GET does, except to streams.
/// @param path percent-decoded
route_match find_route(std::string_view method, std::string_view path);

} // namespace godwit
