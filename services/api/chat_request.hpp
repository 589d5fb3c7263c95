#pragma once

#include "messages/result.hpp"
#include "services/api/message_fields.hpp"
#include "services/api/sampling_fields.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace godwit {

/// The body of `POST /v1/chat/completions`, checked.
struct chat_request {
  std::string model;
  std::vector<client_message> messages;
  sampling_choice sampling;
  std::uint32_t choices = 1; ///< the field `n`
  bool stream = false;
  bool include_usage = false; ///< one more chunk with the usage at the end of a stream
};

/// Reads and checks a chat completion. What OpenAI's API defines and Godwit does not have is refused by name.
/// Accepted without effect, because they change nothing about the answer: `user`, `safety_identifier`,
/// `prompt_cache_key`, `prompt_cache_retention`, `metadata`, `store: false`, `service_tier` auto or default,
/// `response_format` text, `modalities` of text alone, `stream_options.include_obfuscation: false`.
/// @param vocabulary number of the model's tokens
/// @param unnamed how tokens are chosen where the body does not say
result<chat_request> parse_chat_request(
  std::string_view body, token_id vocabulary, const sampling_settings& unnamed);

/// Most answers to one prompt.
constexpr std::int64_t max_choices = 16;
/// Most alternatives that are reported for each token.
constexpr std::int64_t max_top_logprobs = 20;

} // namespace godwit
