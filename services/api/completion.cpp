#include "services/api/completion.hpp"

#include "actors/generation/prompt_details.hpp"
#include "services/api/sse.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace godwit {

namespace {

using nlohmann::ordered_json;

std::string dump(const ordered_json& value) {
  // A token's bytes need not be whole characters.
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json head(const completion_settings& settings, const char* object) {
  return {{"id", settings.id}, {"object", object}, {"created", settings.created}, {"model", settings.model},
    {"system_fingerprint", settings.fingerprint}};
}

/// One chunk of a stream with one choice.
std::string chunk(const completion_settings& settings, std::size_t index, ordered_json delta,
  ordered_json logprobs, const std::string& finish_reason) {
  auto out = head(settings, "chat.completion.chunk");
  out["choices"] =
    ordered_json::array({{{"index", index}, {"delta", std::move(delta)}, {"logprobs", std::move(logprobs)},
      {"finish_reason", finish_reason.empty() ? ordered_json() : ordered_json(finish_reason)}}});
  if (settings.include_usage)
    out["usage"] = nullptr;
  return sse::data(dump(out));
}

ordered_json logprobs_object(ordered_json content) {
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

/// Why a generation has failed, if that is what its batch says.
std::optional<error> failure_in(schema::TokenBatch::Reader batch) {
  switch (batch.getFinish()) {
  case schema::FinishReason::FAILED: {
    const auto words = batch.getErrorMessage();
    if (batch.getErrorCode() == 0)
      return error{errc::internal, "a generation failed without a reason", {}, {}};
    return error{static_cast<errc>(batch.getErrorCode()), std::string(words.begin(), words.size()), {}, {}};
  }
  case schema::FinishReason::CANCELLED:
    // Nobody here asked for it, or nobody would listen.
    return error{errc::peer_lost, "the worker gave the generation up", {}, {}};
  default:
    return std::nullopt;
  }
}

} // namespace

completion::completion(completion_settings settings) : settings_(std::move(settings)) {
  choices_.reserve(settings_.choices);
  for (std::uint32_t i = 0; i < settings_.choices; ++i)
    choices_.push_back({.text = answer_text(settings_.vocabulary, settings_.stop),
      .logprobs = logprob_list(settings_.vocabulary),
      .content = {},
      .finish_reason = {}});
}

void completion::note_usage(choice_state& choice, schema::TokenBatch::Reader batch) {
  if (batch.getPromptTokens() == 0)
    return;
  prompt_tokens_ = batch.getPromptTokens();
  // What any of several generations has computed was not cached.
  if (std::exchange(choice.told, true) && batch.getCachedTokens() >= choice.cached)
    return;
  choice.cached = batch.getCachedTokens();
  choice.cached_host = batch.getCachedHost();
  choice.cached_disk = batch.getCachedDisk();
}

completion::taken completion::take(std::size_t index, schema::TokenBatch::Reader batch) {
  auto& choice = choices_[index];
  taken out;
  if (!ended(index))
    out.failure = failure_in(batch);
  if (out.failure)
    return out;
  out.tokens = batch.getTokens().size();
  note_usage(choice, batch);
  if (ended(index))
    return out;
  std::string text;
  for (const auto token : batch.getTokens()) {
    ++choice.tokens;
    if (settings_.logprobs)
      choice.logprobs.push(token);
    text += choice.text.push(token.getToken());
    if (choice.text.stopped())
      break;
  }
  const auto finish = batch.getFinish();
  if (choice.text.stopped()) {
    choice.finish_reason = "stop";
    out.stop_string = finish == schema::FinishReason::NONE;
  } else if (finish == schema::FinishReason::STOP || finish == schema::FinishReason::LENGTH) {
    text += choice.text.finish();
    choice.finish_reason = finish == schema::FinishReason::STOP ? "stop" : "length";
  }
  choice.visible += text.size();
  if (settings_.stream)
    out.bytes = chunks(index, text);
  else
    choice.content += text;
  return out;
}

std::string completion::chunks(std::size_t index, const std::string& text) {
  auto& choice = choices_[index];
  std::string out;
  if (!std::exchange(choice.begun, true))
    out += chunk(settings_, index, {{"role", "assistant"}, {"content", ""}}, nullptr, {});
  ordered_json logprobs;
  if (settings_.logprobs) {
    // Behind a stop string nothing is certain any more; else the end makes everything so.
    const auto all = ended(index) && !choice.text.stopped();
    auto entries = all ? choice.logprobs.take_all() : choice.logprobs.take(choice.visible);
    if (!entries.empty())
      logprobs = logprobs_object(std::move(entries));
  }
  if (!text.empty() || !logprobs.is_null())
    out += chunk(settings_, index, {{"content", text}}, std::move(logprobs), {});
  if (ended(index))
    out += chunk(settings_, index, ordered_json::object(), nullptr, choice.finish_reason);
  return out;
}

bool completion::done() const {
  return std::none_of(
    choices_.begin(), choices_.end(), [](const auto& choice) { return choice.finish_reason.empty(); });
}

nlohmann::ordered_json completion::usage() const {
  std::uint64_t tokens = 0;
  for (const auto& choice : choices_)
    tokens += choice.tokens;
  // The prompt counts once. Of its tokens those were cached that no choice had to compute.
  const auto& least = *std::min_element(
    choices_.begin(), choices_.end(), [](const auto& a, const auto& b) { return a.cached < b.cached; });
  return {{"prompt_tokens", prompt_tokens_}, {"completion_tokens", tokens},
    {"total_tokens", prompt_tokens_ + tokens},
    {"prompt_tokens_details", prompt_details(least.cached, least.cached_host, least.cached_disk)}};
}

std::string completion::closing() const {
  std::string out;
  if (settings_.include_usage) {
    auto last = head(settings_, "chat.completion.chunk");
    last["choices"] = ordered_json::array();
    last["usage"] = usage();
    out += sse::data(dump(last));
  }
  return out + sse::data("[DONE]");
}

std::string completion::body() {
  auto out = head(settings_, "chat.completion");
  auto list = ordered_json::array();
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    auto& choice = choices_[i];
    ordered_json logprobs;
    if (settings_.logprobs)
      logprobs = logprobs_object(
        choice.text.stopped() ? choice.logprobs.take(choice.visible) : choice.logprobs.take_all());
    list.push_back(
      {{"index", i}, {"message", {{"role", "assistant"}, {"content", choice.content}, {"refusal", nullptr}}},
        {"logprobs", std::move(logprobs)}, {"finish_reason", choice.finish_reason}});
  }
  out["choices"] = std::move(list);
  out["usage"] = usage();
  return dump(out);
}

} // namespace godwit
