#include "actors/session/prompt_plan.hpp"

namespace godwit {

prompt_plan plan_prompt(std::string_view before_text, std::span<const token_id> answer,
  const token_text& vocabulary, std::string_view now_text) {
  if (!now_text.starts_with(before_text))
    return {};
  prompt_plan plan;
  plan.reuse = true;
  auto rest = now_text.substr(before_text.size());
  for (const auto token : answer) {
    if (token >= vocabulary.size())
      break;
    const auto bytes = vocabulary.bytes(token);
    if (!rest.starts_with(bytes))
      break;
    rest.remove_prefix(bytes.size());
    ++plan.answer_tokens;
  }
  plan.rest = rest;
  return plan;
}

} // namespace godwit
