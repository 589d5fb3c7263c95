#pragma once

#include "tools/godwit/client.hpp"
#include "tools/godwit/output.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace godwit::cli {

/// What `session create` and `chat` may say about a new session; only what was given is sent.
struct new_session {
  std::optional<std::string> model;
  std::optional<std::string> system;
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<std::uint32_t> top_k;
  std::optional<double> min_p;
  std::optional<double> repeat_penalty;
  std::optional<std::uint64_t> seed;
  std::optional<std::uint32_t> max_tokens;
  std::vector<std::string> stop;
  std::optional<std::uint64_t> ttl_s;
  std::optional<std::string> on_busy;
  std::optional<std::string> metadata; ///< a JSON object

  /// The body of POST /v1/sessions. @returns `invalid_argument` if `metadata` is not a JSON object
  result<nlohmann::ordered_json> body() const;
};

int session_create(client& node, const settings& how, const new_session& wanted);
int session_list(client& node, const settings& how, std::uint32_t limit, const std::string& after);
int session_show(client& node, const settings& how, const std::string& id);
/// Sends a message and prints the answer as it comes; with `wait` false only what the node said to the
/// message.
int session_send(client& node, const settings& how, const std::string& id, const std::string& text,
  const std::string& key, bool wait);
/// Prints events from a place on: those that are there, and with `follow` those to come.
int session_events(
  client& node, const settings& how, const std::string& id, const std::string& after, bool follow);
int session_transcript(client& node, const settings& how, const std::string& id);
int session_fork(client& node, const settings& how, const std::string& id, const std::string& at);
/// POST of an action without further words: cancel, suspend.
int session_act(client& node, const settings& how, const std::string& id, const std::string& action);
/// Keeps what the device has of a session for some seconds.
int session_pin(client& node, const settings& how, const std::string& id, std::uint32_t seconds);
int session_unpin(client& node, const settings& how, const std::string& id);
int session_migrate(client& node, const settings& how, const std::string& id, const std::string& target);
int session_delete(client& node, const settings& how, const std::string& id);

/// Prints one event of a turn as it arrives: as a line of JSON if asked for, else the text that it adds.
/// @returns true when the event ends the turn
bool print_turn_event(const sse_event& event, const settings& how);
/// The failure that a turn's last event tells of, if it does.
std::optional<error> turn_failure(const sse_event& event);

/// A session id or other word as part of a path.
std::string path_part(const std::string& text);

} // namespace godwit::cli
