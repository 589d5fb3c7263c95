#include "actors/device/step_pace.hpp"

#include <algorithm>

namespace godwit {
namespace {

/// Weight of the newest step: a machine that slows down is noticed within some ten steps, and one slow step
/// alone changes little.
constexpr double newest = 0.125;

void average(std::optional<double>& mean, double value) {
  mean = mean ? *mean + newest * (value - *mean) : value;
}

} // namespace

std::uint32_t step_pace::prompt_tokens(std::uint32_t least, std::uint32_t most) const {
  least = std::min(least, most);
  if (target_ <= duration::zero())
    return most;
  // Nothing is known yet: the first step with both is short, whatever the machine.
  if (!token_ns_)
    return least;
  const double left = static_cast<double>(target_.count()) - streams_ns_.value_or(0);
  const double tokens = std::clamp(left / *token_ns_, static_cast<double>(least), static_cast<double>(most));
  return static_cast<std::uint32_t>(tokens);
}

void step_pace::learn(std::uint32_t streams, std::uint32_t prompt, duration took) {
  const auto time = static_cast<double>(std::max(took, duration(1)).count());
  if (prompt == 0 && streams > 0)
    average(streams_ns_, time);
  if (prompt == 0)
    return;
  // A prompt token costs at least a tenth of its share, so that a wrong mean of the streams cannot make it
  // free.
  const double share = time / prompt;
  const double alone = (time - (streams > 0 ? streams_ns_.value_or(0) : 0)) / prompt;
  average(token_ns_, std::max(alone, share / 10));
}

} // namespace godwit
