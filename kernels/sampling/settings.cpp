#include "kernels/sampling/settings.hpp"

#include <cmath>
#include <string>

namespace godwit {
namespace {

constexpr float most_bias = 100.0F;
constexpr float most_penalty = 2.0F;
constexpr std::uint8_t most_logprobs = 20;

tl::unexpected<error> wrong(const std::string& field, const std::string& rule) {
  return fail(errc::invalid_argument, field + " must be " + rule, field);
}

} // namespace

result<void> validate(const sampling_settings& settings, std::uint32_t vocabulary) {
  // Comparisons are written so that a NaN fails them.
  if (!(settings.temperature >= 0) || !std::isfinite(settings.temperature))
    return wrong("temperature", "a finite number of at least 0");
  if (!(settings.top_p > 0 && settings.top_p <= 1))
    return wrong("top_p", "above 0 and at most 1");
  if (!(settings.min_p >= 0 && settings.min_p <= 1))
    return wrong("min_p", "from 0 to 1");
  if (!(settings.repeat_penalty > 0) || !std::isfinite(settings.repeat_penalty))
    return wrong("repeat_penalty", "a finite number above 0");
  if (!(std::abs(settings.frequency_penalty) <= most_penalty))
    return wrong("frequency_penalty", "from -2 to 2");
  if (!(std::abs(settings.presence_penalty) <= most_penalty))
    return wrong("presence_penalty", "from -2 to 2");
  for (const auto& [token, bias] : settings.bias) {
    if (token >= vocabulary)
      return wrong("logit_bias", "given for token ids below " + std::to_string(vocabulary));
    if (!(std::abs(bias) <= most_bias))
      return wrong("logit_bias", "from -100 to 100 for every token");
  }
  if (settings.top_logprobs > most_logprobs)
    return wrong("top_logprobs", "at most " + std::to_string(most_logprobs));
  return {};
}

} // namespace godwit
