#include "services/api/message_fields.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

namespace godwit {

namespace {

constexpr auto any_length = std::numeric_limits<std::size_t>::max();

/// The text of one part of a content list.
std::optional<std::string> read_part(const nlohmann::json& part, std::string path, problem& found) {
  field_reader fields(part, std::move(path), found);
  fields.require("type");
  const auto type =
    fields.word("type", {"text"}, {"image_url", "input_audio", "file", "refusal", "video_url", "audio_url"});
  if (!type)
    return std::nullopt;
  fields.require("text");
  auto text = fields.text("text", any_length);
  fields.finish();
  return text;
}

/// A participant's name becomes part of the prompt, so it may not look like anything else there.
bool is_participant_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

/// Clients send back what an assistant's message came with. Its lists are accepted while they are empty.
void read_echoed_fields(field_reader& fields) {
  for (const auto* name : {"tool_calls", "annotations"})
    if (const auto* value = fields.value(name); value != nullptr && !(value->is_array() && value->empty()))
      fields.unsupported(name);
  for (const auto* name : {"refusal", "audio", "function_call"})
    fields.unsupported(name);
}

client_message read_message(const nlohmann::json& message, std::string path, problem& found) {
  field_reader fields(message, std::move(path), found);
  client_message out;
  fields.require("role");
  out.role =
    fields.word("role", {"system", "developer", "user", "assistant"}, {"tool", "function"}).value_or("");
  if (out.role == "developer")
    out.role = "system";
  if (out.role == "assistant")
    read_echoed_fields(fields);
  for (const auto* name : {"tool_calls", "tool_call_id"})
    if (out.role != "assistant" || std::string_view(name) == "tool_call_id")
      fields.unsupported(name);
  fields.require("content");
  out.content = read_content(fields, "content", found).value_or("");
  if (const auto name = fields.text("name", any_length)) {
    if (!is_participant_name(*name))
      fields.invalid("name", "must be 1 to 64 letters, digits, underscores and hyphens");
    out.name = *name;
  }
  fields.finish();
  return out;
}

} // namespace

std::optional<std::string> read_content(field_reader& fields, std::string_view name, problem& found) {
  const auto* value = fields.value(name);
  if (value == nullptr)
    return std::nullopt;
  if (value->is_string())
    return value->get<std::string>();
  if (!value->is_array() || value->empty()) {
    fields.invalid(name, "must be a string or a list of text parts", "invalid_type");
    return std::nullopt;
  }
  std::string joined;
  for (std::size_t i = 0; i < value->size(); ++i) {
    const auto text = read_part((*value)[i], fmt::format("{}[{}]", fields.path(name), i), found);
    if (!text)
      return std::nullopt;
    joined += *text;
  }
  return joined;
}

std::vector<client_message> read_messages(field_reader& fields, problem& found) {
  std::vector<client_message> out;
  fields.require("messages");
  const auto* list = fields.list("messages", any_length);
  if (list == nullptr)
    return out;
  if (list->empty())
    fields.invalid("messages", "must have at least one message");
  out.reserve(list->size());
  for (std::size_t i = 0; i < list->size() && !found; ++i)
    out.push_back(read_message((*list)[i], fmt::format("messages[{}]", i), found));
  return out;
}

} // namespace godwit
