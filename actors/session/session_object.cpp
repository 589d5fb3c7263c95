#include "actors/session/session_object.hpp"

#include "actors/generation/prompt_details.hpp"
#include "actors/session/shortest.hpp"
#include "messages/text.hpp"

namespace godwit {

namespace {

using nlohmann::ordered_json;

const char* word(schema::OnBusy rule) {
  switch (rule) {
  case schema::OnBusy::QUEUE:
    return "queue";
  case schema::OnBusy::REJECT:
    return "reject";
  case schema::OnBusy::INTERRUPT:
    return "interrupt";
  }
  return "unknown";
}

ordered_json usage(schema::Usage::Reader usage) {
  return {{"prompt_tokens", usage.getPromptTokens()}, {"completion_tokens", usage.getCompletionTokens()},
    {"total_tokens", usage.getPromptTokens() + usage.getCompletionTokens()},
    {"prompt_tokens_details",
      prompt_details(usage.getCachedTokens(), usage.getCachedHost(), usage.getCachedDisk())}};
}

ordered_json sampling(schema::SessionSettings::Reader settings) {
  const auto from = settings.getSampling();
  ordered_json out{{"temperature", shortest(from.getTemperature())}, {"top_p", shortest(from.getTopP())},
    {"top_k", from.getTopK()}, {"min_p", shortest(from.getMinP())},
    {"repeat_penalty", shortest(from.getRepeatPenalty())},
    {"frequency_penalty", shortest(from.getFrequencyPenalty())},
    {"presence_penalty", shortest(from.getPresencePenalty())},
    {"seed", static_cast<std::int64_t>(from.getSeed())}};
  if (from.getBias().size() != 0) {
    auto bias = ordered_json::object();
    for (const auto entry : from.getBias())
      bias[std::to_string(entry.getToken())] = shortest(entry.getBias());
    out["logit_bias"] = std::move(bias);
  }
  out["max_tokens"] = settings.getMaxTokens() == 0 ? ordered_json() : ordered_json(settings.getMaxTokens());
  auto stop = ordered_json::array();
  for (const auto text : settings.getStop())
    stop.push_back(text_of(text));
  out["stop"] = std::move(stop);
  return out;
}

} // namespace

ordered_json session_object(schema::SessionInfo::Reader info) {
  const auto settings = info.getSettings();
  ordered_json out{{"id", text_of(info.getId())}, {"object", "session"},
    {"status", text_of(info.getStatus())}, {"model", text_of(settings.getModel())},
    {"owner", {{"node", text_of(info.getOwnerNode())}, {"epoch", info.getOwnerEpoch()}}},
    {"turns", info.getTurns()}, {"queued", info.getQueued()}, {"usage", usage(info.getUsage())},
    {"kv", {{"device", info.getKvDevice()}, {"host", info.getKvHost()}, {"disk", info.getKvDisk()}}},
    {"journal",
      {{"sequence", info.getJournalSequence()},
        {"oldest_event", info.getOldestEvent().size() == 0 ? ordered_json()
                                                           : ordered_json(text_of(info.getOldestEvent()))}}},
    {"created_at", info.getCreatedAt()},
    {"expires_at", info.getExpiresAt() == 0 ? ordered_json() : ordered_json(info.getExpiresAt())},
    {"on_busy", word(settings.getOnBusy())}, {"sampling", sampling(settings)}};
  if (info.getForkedFrom().size() != 0)
    out["forked_from"] = {{"session", text_of(info.getForkedFrom())}, {"at", text_of(info.getForkedAt())}};
  auto metadata = ordered_json::parse(text_of(settings.getMetadata()), nullptr, false);
  out["metadata"] = metadata.is_object() ? std::move(metadata) : ordered_json::object();
  return out;
}

} // namespace godwit
