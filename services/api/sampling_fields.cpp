#include "services/api/sampling_fields.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <limits>

namespace godwit {

namespace {

constexpr std::size_t max_biases = 1'024;

/// A token's id as a key of an object: digits without a leading zero.
std::optional<token_id> bias_token(const std::string& key, token_id vocabulary) {
  token_id id = 0;
  const auto* end = key.data() + key.size();
  const auto parsed = std::from_chars(key.data(), end, id);
  if (parsed.ec != std::errc() || parsed.ptr != end || std::to_string(id) != key || id >= vocabulary)
    return std::nullopt;
  return id;
}

void read_bias(field_reader& fields, token_id vocabulary, sampling_settings& settings) {
  const auto* biases = fields.object("logit_bias");
  if (biases == nullptr)
    return;
  if (biases->size() > max_biases)
    return fields.invalid("logit_bias", fmt::format("must have at most {} entries", max_biases));
  for (const auto& [key, value] : biases->items()) {
    const auto name = "logit_bias." + shown_key(key);
    const auto id = bias_token(key, vocabulary);
    if (!id)
      return fields.invalid(name, fmt::format("must be named by a token id below {}", vocabulary));
    if (!value.is_number())
      return fields.invalid(name, "must be a number", "invalid_type");
    const auto bias = value.get<double>();
    if (!(bias >= -100 && bias <= 100))
      return fields.invalid(name, "must be at least -100 and at most 100");
    settings.bias.emplace_back(*id, static_cast<float>(bias));
  }
}

void read_stop(field_reader& fields, std::vector<std::string>& stop) {
  const auto* value = fields.value("stop");
  if (value == nullptr)
    return;
  const auto take = [&](const nlohmann::json& text, const std::string& name) {
    if (!text.is_string())
      return fields.invalid(name, "must be a string", "invalid_type");
    const auto& bytes = text.get_ref<const std::string&>();
    if (bytes.empty() || bytes.size() > max_stop_bytes)
      return fields.invalid(name, fmt::format("must have at least 1 and at most {} bytes", max_stop_bytes));
    stop.push_back(bytes);
  };
  if (value->is_string())
    return take(*value, "stop");
  if (!value->is_array())
    return fields.invalid("stop", "must be a string or a list of strings", "invalid_type");
  if (value->size() > max_stop_strings)
    return fields.invalid("stop", fmt::format("must have at most {} strings", max_stop_strings));
  for (std::size_t i = 0; i < value->size(); ++i)
    take((*value)[i], fmt::format("stop[{}]", i));
}

float or_default(std::optional<double> given, float otherwise) {
  return given ? static_cast<float>(*given) : otherwise;
}

} // namespace

sampling_choice read_sampling(field_reader& fields, token_id vocabulary, const sampling_settings& unnamed) {
  constexpr auto most = std::int64_t{std::numeric_limits<std::int32_t>::max()};
  sampling_choice out{.settings = unnamed, .stop = {}};
  auto& settings = out.settings;
  settings.temperature = or_default(fields.number("temperature", {0, 2}), settings.temperature);
  settings.top_p = or_default(fields.number("top_p", {0, 1, true}), settings.top_p);
  settings.min_p = or_default(fields.number("min_p", {0, 1}), settings.min_p);
  settings.top_k = static_cast<std::uint32_t>(fields.integer("top_k", 0, most).value_or(settings.top_k));
  settings.repeat_penalty =
    or_default(fields.number("repeat_penalty", {0, 10, true}), settings.repeat_penalty);
  settings.frequency_penalty =
    or_default(fields.number("frequency_penalty", {-2, 2}), settings.frequency_penalty);
  settings.presence_penalty =
    or_default(fields.number("presence_penalty", {-2, 2}), settings.presence_penalty);
  if (const auto seed = fields.integer(
        "seed", std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max())) {
    settings.seed = static_cast<std::uint64_t>(*seed);
    out.seeded = true;
  }
  read_bias(fields, vocabulary, settings);
  out.max_tokens = static_cast<std::uint32_t>(fields.integer("max_tokens", 1, most).value_or(0));
  read_stop(fields, out.stop);
  return out;
}

} // namespace godwit
