#include "services/api/logprob_list.hpp"

#include "actors/session/shortest.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace godwit {

namespace {

/// JSON has no infinity; OpenAI's API reports tokens that are out of reach with this value.
constexpr float least_logprob = -9999.0F;

} // namespace

void logprob_list::push(schema::SampledToken::Reader token) {
  if (vocabulary_->is_control(token.getToken()))
    return;
  entry added{end_, token.getToken(), token.getLogprob(), {}};
  added.top.reserve(token.getTop().size());
  for (const auto alternative : token.getTop())
    added.top.emplace_back(alternative.getToken(), alternative.getLogprob());
  end_ += vocabulary_->bytes(added.token).size();
  waiting_.push_back(std::move(added));
}

nlohmann::ordered_json logprob_list::describe(token_id token, float logprob) const {
  const auto bytes = vocabulary_->bytes(token);
  auto list = nlohmann::ordered_json::array();
  for (const char byte : bytes)
    list.push_back(static_cast<unsigned char>(byte));
  // A negated comparison, so that NaN is replaced too.
  const auto shown = logprob > least_logprob ? logprob : least_logprob;
  return {
    {"token", std::string(bytes)}, {"logprob", shortest(std::min(shown, 0.0F))}, {"bytes", std::move(list)}};
}

nlohmann::ordered_json logprob_list::pop() {
  const auto& first = waiting_.front();
  auto out = describe(first.token, first.logprob);
  auto top = nlohmann::ordered_json::array();
  for (const auto& [token, logprob] : first.top)
    top.push_back(describe(token, logprob));
  out["top_logprobs"] = std::move(top);
  waiting_.pop_front();
  return out;
}

nlohmann::ordered_json logprob_list::take(std::size_t visible) {
  auto out = nlohmann::ordered_json::array();
  while (!waiting_.empty() && waiting_.front().begin < visible)
    out.push_back(pop());
  return out;
}

nlohmann::ordered_json logprob_list::take_all() {
  auto out = nlohmann::ordered_json::array();
  while (!waiting_.empty())
    out.push_back(pop());
  return out;
}

} // namespace godwit
