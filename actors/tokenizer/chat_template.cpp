#include "actors/tokenizer/chat_template.hpp"

#include <nlohmann/json.hpp>
#include <xxhash.h>

#include <array>
#include <cstdio>

namespace godwit {

namespace {

/// The variables that name tokens, and the key that holds each token's id.
constexpr std::array<std::pair<const char*, const char*>, 4> token_keys{{
  {"bos_token", "tokenizer.ggml.bos_token_id"},
  {"eos_token", "tokenizer.ggml.eos_token_id"},
  {"unk_token", "tokenizer.ggml.unknown_token_id"},
  {"pad_token", "tokenizer.ggml.padding_token_id"},
}};

std::string digest_of(const std::string& bytes) {
  const auto hash = XXH3_128bits(bytes.data(), bytes.size());
  std::array<char, 33> out{};
  std::snprintf(out.data(), out.size(), "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
    static_cast<unsigned long long>(hash.low64));
  return out.data();
}

} // namespace

result<std::shared_ptr<const chat_template>> chat_template::load(const gguf::file& file, template_clock now) {
  auto out = std::shared_ptr<chat_template>(new chat_template);
  out->now_ = std::move(now);
  for (const auto& [variable, key] : token_keys) {
    if (!file.find(key))
      continue;
    const auto id = file.unsigned_value(key);
    if (!id)
      return fail(id);
    const auto tokens = file.strings("tokenizer.ggml.tokens");
    if (!tokens)
      return fail(tokens);
    if (*id >= tokens->size())
      return fail(errc::corrupt, std::string(key) + " names a token that the vocabulary does not have");
    out->names_.push_back({variable, std::string((*tokens)[*id])});
  }
  if (file.find("tokenizer.chat_template")) {
    const auto source = file.string_value("tokenizer.chat_template");
    if (!source)
      return fail(source);
    out->source_ = *source;
    auto program = jinja::program::parse(out->source_);
    if (!program)
      return fail(
        program.error().code, "the model's chat template cannot be used: " + program.error().message);
    out->program_ = std::move(*program);
  }
  // Lengths before the parts, so that no two lists of parts give the same bytes.
  std::string bytes;
  const auto add = [&](const std::string& part) { bytes += std::to_string(part.size()) + ":" + part; };
  add(out->source_);
  for (const auto& [variable, text] : out->names_) {
    add(variable);
    add(text);
  }
  out->digest_ = digest_of(bytes);
  return out;
}

result<std::string> chat_template::render(const nlohmann::ordered_json& messages, bool add_generation_prompt,
  const nlohmann::ordered_json& extra) const {
  if (!program_)
    return fail(errc::unsupported,
      "the model has no chat template (tokenizer.chat_template), so it cannot chat", "model");
  if (!messages.is_array())
    return fail(errc::invalid_argument, "messages must be an array", "messages");
  nlohmann::ordered_json context = {{"tools", nullptr}, {"documents", nullptr}};
  for (const auto& [variable, text] : names_)
    context[variable] = text;
  context["messages"] = messages;
  context["add_generation_prompt"] = add_generation_prompt;
  if (extra.is_object())
    context.update(extra);
  auto out = program_->render(context, now_());
  if (!out)
    return fail(out.error().code, "the model's chat template refuses: " + out.error().message, "messages");
  return out;
}

result<std::string> chat_template::render(
  const nlohmann::ordered_json& messages, bool add_generation_prompt) const {
  return render(messages, add_generation_prompt, nlohmann::ordered_json::object());
}

result<std::string> chat_template::render(const nlohmann::json& messages, bool add_generation_prompt) const {
  return render(nlohmann::ordered_json(messages), add_generation_prompt);
}

} // namespace godwit
