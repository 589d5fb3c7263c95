#include "services/api/letters.hpp"

#include <capnp/blob.h>

namespace godwit {

namespace {

capnp::Text::Reader text(const std::string& value) {
  return {value.c_str(), value.size()};
}

void fill(schema::Sampling::Builder out, const sampling_settings& from) {
  out.setTemperature(from.temperature);
  out.setTopK(from.top_k);
  out.setTopP(from.top_p);
  out.setMinP(from.min_p);
  out.setRepeatPenalty(from.repeat_penalty);
  out.setFrequencyPenalty(from.frequency_penalty);
  out.setPresencePenalty(from.presence_penalty);
  out.setPenaltyWindow(from.penalty_window);
  out.setSeed(from.seed);
  auto bias = out.initBias(static_cast<unsigned>(from.bias.size()));
  for (unsigned i = 0; i < bias.size(); ++i) {
    bias[i].setToken(from.bias[i].first);
    bias[i].setBias(from.bias[i].second);
  }
  out.setTopLogprobs(from.top_logprobs);
  out.setLogprobs(from.logprobs);
}

schema::OnBusy word(busy_rule rule) {
  switch (rule) {
  case busy_rule::queue:
    return schema::OnBusy::QUEUE;
  case busy_rule::reject:
    return schema::OnBusy::REJECT;
  case busy_rule::interrupt:
    return schema::OnBusy::INTERRUPT;
  }
  return schema::OnBusy::QUEUE;
}

} // namespace

letter<schema::RenderRequest> render_letter(const std::vector<client_message>& messages) {
  return letter<schema::RenderRequest>::make([&](auto b) {
    auto list = b.initMessages(static_cast<unsigned>(messages.size()));
    for (unsigned i = 0; i < list.size(); ++i) {
      list[i].setRole(text(messages[i].role));
      list[i].setContent(text(messages[i].content));
      list[i].setName(text(messages[i].name));
    }
    b.setAddGenerationPrompt(true);
  });
}

letter<schema::GenerateRequest> generate_letter(
  const generation_plan& plan, sampling_settings sampling, const generation_begin& from) {
  sampling.seed = plan.seed + from.choice;
  const auto prompt = plan.prompt.read().getIds();
  const auto released = static_cast<unsigned>(from.released.size());
  return letter<schema::GenerateRequest>::make([&](auto b) {
    b.setRequest(from.request);
    b.setTenant(text(plan.tenant.value));
    b.setModel(text(plan.model));
    auto tokens = b.initTokens(prompt.size() + released);
    for (unsigned i = 0; i < prompt.size(); ++i)
      tokens.set(i, prompt[i]);
    for (unsigned i = 0; i < released; ++i)
      tokens.set(prompt.size() + i, from.released[i]);
    b.setPromptLength(prompt.size());
    b.setMaxTokens(plan.max_tokens - released);
    fill(b.initSampling(), sampling);
    b.setCredit(from.credit);
    b.setGroup(plan.group);
  });
}

letter<schema::SessionSettings> settings_letter(const create_session_request& request,
  const tenant_id& tenant, const std::string& model, std::uint64_t seed) {
  auto sampling = request.sampling.settings;
  if (!request.sampling.seeded)
    sampling.seed = seed;
  return letter<schema::SessionSettings>::make([&](auto b) {
    b.setTenant(text(tenant.value));
    b.setModel(text(request.model.empty() ? model : request.model));
    if (request.system)
      b.setSystem(text(*request.system));
    b.setHasSystem(request.system.has_value());
    fill(b.initSampling(), sampling);
    b.setMaxTokens(request.sampling.max_tokens);
    auto stop = b.initStop(static_cast<unsigned>(request.sampling.stop.size()));
    for (unsigned i = 0; i < stop.size(); ++i)
      stop.set(i, text(request.sampling.stop[i]));
    b.setMetadata(text(request.metadata));
    b.setOnBusy(word(request.on_busy));
    b.setTtlSeconds(request.ttl_s);
  });
}

letter<schema::PostMessage> message_letter(const message_request& request, const std::string& key) {
  const auto digest = request.digest();
  return letter<schema::PostMessage>::make([&](auto b) {
    b.setIdempotencyKey(text(key));
    b.setBodyHash({reinterpret_cast<const kj::byte*>(digest.data()), digest.size()});
    b.setContent(text(request.content));
    b.setCancelOnDisconnect(request.cancel_on_disconnect);
  });
}

letter<schema::LocateRequest> locate_letter(const session_id& session, const tenant_id& tenant) {
  return letter<schema::LocateRequest>::make([&](auto b) {
    b.setSession(text(session.value));
    b.setTenant(text(tenant.value));
  });
}

letter<schema::ListRequest> list_letter(const page_query& page, const tenant_id& tenant) {
  return letter<schema::ListRequest>::make([&](auto b) {
    b.setTenant(text(tenant.value));
    b.setLimit(page.limit);
    b.setAfter(text(page.after));
  });
}

} // namespace godwit
