#pragma once

#include "messages/result.hpp"
#include "services/api/sampling_fields.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace godwit {

/// What a session does with a message that comes while a turn runs.
enum class busy_rule : std::uint8_t { queue, reject, interrupt };

/// The body of `POST /v1/sessions`, checked.
struct create_session_request {
  std::string model; ///< empty: the one that the node serves
  std::optional<std::string> system;
  sampling_choice sampling;
  std::string metadata; ///< a JSON object as text
  busy_rule on_busy = busy_rule::queue;
  std::uint64_t ttl_s = 0; ///< 0 is for ever
};

/// The body of `POST /v1/sessions/{id}/messages`, checked.
struct message_request {
  std::string content;
  bool stream = false;
  bool cancel_on_disconnect = false;

  /// 128 bits over what the message says, whatever the order and spelling of its body. How the answer is
  /// delivered (`stream`) does not count, so that a client may ask again in another way.
  std::array<std::byte, 16> digest() const;
};

/// The body of `POST /v1/sessions/{id}/cancel`.
struct cancel_request {
  std::uint32_t turn = 0; ///< 0 is the running one
};

/// The body of `POST /v1/sessions/{id}/fork`.
struct fork_request {
  std::string at; ///< an event's id or a turn's number; empty is the end
};

/// The body of `POST /v1/sessions/{id}/pin`.
struct pin_request {
  std::uint32_t ttl_seconds = 0;
};

/// The body of `POST /v1/actors/{name}/trace`.
struct trace_request {
  std::uint32_t letters = 100;
  std::uint32_t seconds = 10;
};

/// An empty body stands for an empty object, except for messages and pins.
/// @param vocabulary number of the model's tokens
/// @param unnamed how tokens are chosen where the body does not say
result<create_session_request> parse_create_session(
  std::string_view body, token_id vocabulary, const sampling_settings& unnamed);
result<message_request> parse_message(std::string_view body);
result<cancel_request> parse_cancel(std::string_view body);
result<fork_request> parse_fork(std::string_view body);
result<pin_request> parse_pin(std::string_view body);
/// @param most_letters, most_seconds the limits
result<trace_request> parse_trace(
  std::string_view body, std::uint32_t most_letters, std::uint32_t most_seconds);
/// The body of a call that says all by its path.
result<void> parse_nothing(std::string_view body);

} // namespace godwit
