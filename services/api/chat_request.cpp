#include "services/api/chat_request.hpp"

#include "services/api/json_document.hpp"

#include <nlohmann/json.hpp>

#include <limits>

namespace godwit {

namespace {

void refuse_what_is_not_built(field_reader& fields) {
  for (const auto* name : {"tools", "tool_choice", "parallel_tool_calls", "functions", "function_call",
         "audio", "prediction", "reasoning_effort", "verbosity", "web_search_options"})
    fields.unsupported(name);
}

/// Fields of OpenAI's API that cannot change an answer here, or only with some values.
void read_harmless(field_reader& fields) {
  for (const auto* name :
    {"user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "metadata"})
    fields.accept(name);
  if (fields.boolean("store").value_or(false))
    fields.unsupported("store");
  fields.word("service_tier", {"auto", "default"}, {"flex", "priority", "scale"});
  if (const auto* format = fields.object("response_format"))
    if (const auto type = format->find("type"); type == format->end() || *type != "text")
      fields.unsupported("response_format");
  if (const auto* modalities = fields.list("modalities", 16))
    for (const auto& kind : *modalities)
      if (kind != "text")
        fields.unsupported("modalities");
}

void read_log_probabilities(field_reader& fields, sampling_settings& settings) {
  settings.logprobs = fields.boolean("logprobs").value_or(false);
  if (const auto top = fields.integer("top_logprobs", 0, max_top_logprobs)) {
    if (!settings.logprobs && *top != 0)
      fields.invalid("top_logprobs", "needs \"logprobs\": true");
    settings.top_logprobs = static_cast<std::uint8_t>(*top);
  }
}

void read_stream(field_reader& fields, problem& found, chat_request& out) {
  out.stream = fields.boolean("stream").value_or(false);
  const auto* options = fields.object("stream_options");
  if (options == nullptr)
    return;
  if (!out.stream)
    fields.invalid("stream_options", "needs \"stream\": true");
  field_reader inner(*options, "stream_options", found);
  out.include_usage = inner.boolean("include_usage").value_or(false);
  if (inner.boolean("include_obfuscation").value_or(false))
    inner.unsupported("include_obfuscation");
  inner.finish();
}

/// `max_completion_tokens` is the newer name of `max_tokens`.
void read_length(field_reader& fields, sampling_choice& sampling) {
  const auto newer =
    fields.integer("max_completion_tokens", 1, std::int64_t{std::numeric_limits<std::int32_t>::max()});
  if (!newer)
    return;
  if (sampling.max_tokens != 0 && sampling.max_tokens != *newer)
    fields.invalid("max_completion_tokens", "contradicts max_tokens: give one of them");
  sampling.max_tokens = static_cast<std::uint32_t>(*newer);
}

} // namespace

result<chat_request> parse_chat_request(
  std::string_view body, token_id vocabulary, const sampling_settings& unnamed) {
  const auto document = parse_json_document(body);
  if (!document)
    return fail(document);
  problem found;
  field_reader fields(*document, "", found);
  chat_request out;
  refuse_what_is_not_built(fields);
  fields.require("model");
  out.model = fields.text("model", 256).value_or("");
  out.messages = read_messages(fields, found);
  out.sampling = read_sampling(fields, vocabulary, unnamed);
  read_length(fields, out.sampling);
  out.choices = static_cast<std::uint32_t>(fields.integer("n", 1, max_choices).value_or(1));
  read_log_probabilities(fields, out.sampling.settings);
  read_stream(fields, found, out);
  read_harmless(fields);
  fields.finish();
  if (found)
    return found.failure();
  return out;
}

} // namespace godwit
