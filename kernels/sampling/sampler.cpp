#include "kernels/sampling/sampler.hpp"

#include "kernels/sampling/elementary.hpp"
#include "kernels/sampling/philox.hpp"
#include "messages/check.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace godwit {
namespace {

using candidate = sampler_scratch::candidate;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float greatest_float = std::numeric_limits<float>::max();

/// No NaN, no plus infinity.
float tamed(float logit) {
  return logit == logit ? std::min(logit, greatest_float) : -infinity;
}

/// Greatest logit first, lowest id among equals: a total order, so every sort gives the same.
bool before(const candidate& a, const candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

std::size_t greatest_index(std::span<const float> logits) {
  return static_cast<std::size_t>(std::ranges::max_element(logits) - logits.begin());
}

/// Sorts the first `count` of [from, end) into their places.
void sort_first(std::vector<candidate>& all, std::size_t from, std::size_t count) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(from);
  const auto middle = begin + static_cast<std::ptrdiff_t>(std::min(count, all.size() - from));
  // A heap of a few is faster than partitioning, one of many slower.
  if (middle - begin > 1024 && middle != all.end()) {
    std::nth_element(begin, middle, all.end(), before);
    std::sort(begin, middle, before);
  } else {
    std::partial_sort(begin, middle, all.end(), before);
  }
}

/// Steps 2 to 5.
void adjust(std::span<const float> logits, const sampling_settings& settings,
  std::span<const token_id> context, std::uint32_t prompt_length, sampler_scratch& scratch) {
  auto& out = scratch.logits;
  out.resize(logits.size());
  std::ranges::transform(logits, out.begin(), tamed);

  for (const auto& [token, bias] : settings.bias) {
    GODWIT_CHECK(token < out.size());
    out[token] = tamed(out[token] + bias);
  }

  auto& counts = scratch.counts;
  counts.resize(logits.size(), 0);
  const auto count = [&](std::span<const token_id> tokens) {
    for (const auto token : tokens) {
      GODWIT_CHECK(token < counts.size());
      ++counts[token];
    }
  };
  /// Applies a change once to each different token, and leaves the counts zero.
  const auto each_counted = [&](std::span<const token_id> tokens, auto change) {
    for (const auto token : tokens)
      if (const auto times = std::exchange(counts[token], 0); times > 0)
        out[token] = tamed(change(out[token], times));
  };

  if (settings.repeat_penalty != 1.0F) {
    const auto window = context.last(std::min<std::size_t>(settings.penalty_window, context.size()));
    count(window);
    each_counted(window, [&](float logit, std::uint32_t) {
      return logit > 0 ? logit / settings.repeat_penalty : logit * settings.repeat_penalty;
    });
  }
  if (settings.frequency_penalty != 0 || settings.presence_penalty != 0) {
    const auto generated = context.subspan(std::min<std::size_t>(prompt_length, context.size()));
    count(generated);
    each_counted(generated, [&](float logit, std::uint32_t times) {
      const float frequency = static_cast<float>(times) * settings.frequency_penalty;
      return (logit - frequency) - settings.presence_penalty;
    });
  }
}

/// Step 1, for the chosen token and the most likely ones.
void report(
  std::span<const float> logits, const sampling_settings& settings, sampled& out, sampler_scratch& scratch) {
  auto& tame = scratch.logits;
  tame.resize(logits.size());
  std::ranges::transform(logits, tame.begin(), tamed);
  const float greatest = tame[greatest_index(tame)];
  if (greatest == -infinity) {
    out.logprob = least_logprob;
    for (token_id token = 0; token < std::min<std::size_t>(settings.top_logprobs, logits.size()); ++token)
      out.top.emplace_back(token, least_logprob);
    return;
  }

  auto& weights = scratch.weights;
  weights.resize(tame.size());
  for (std::size_t i = 0; i < tame.size(); ++i)
    weights[i] = exp_nonpositive(tame[i] - greatest);
  double sum = 0;
  for (const auto weight : weights)
    sum += static_cast<double>(weight);
  const double whole = natural_log(sum);
  const auto logprob_of = [&](float logit) {
    const double difference = static_cast<double>(logit) - static_cast<double>(greatest) - whole;
    return difference > static_cast<double>(least_logprob) ? static_cast<float>(difference) : least_logprob;
  };

  out.logprob = logprob_of(tame[out.token]);
  if (settings.top_logprobs == 0)
    return;
  auto& candidates = scratch.candidates;
  candidates.resize(tame.size());
  for (std::size_t i = 0; i < tame.size(); ++i)
    candidates[i] = {tame[i], static_cast<token_id>(i), 0};
  const auto wanted = std::min<std::size_t>(settings.top_logprobs, candidates.size());
  sort_first(candidates, 0, wanted);
  for (std::size_t i = 0; i < wanted; ++i)
    out.top.emplace_back(candidates[i].token, logprob_of(candidates[i].logit));
}

double sum_of_weights(const std::vector<candidate>& candidates) {
  double sum = 0;
  for (const auto& each : candidates)
    sum += static_cast<double>(each.weight);
  return sum;
}

void sort_by_id(std::vector<candidate>& candidates) {
  std::ranges::sort(candidates, {}, &candidate::token);
}

/// Step 8. @param whole the sum of all weights by ascending id @returns with the kept ones in the order of
/// logits
void keep_top_p(std::vector<candidate>& candidates, float top_p, double whole) {
  const double wanted = static_cast<double>(top_p) * whole;
  double sum = 0;
  std::size_t sorted = 0;
  std::size_t kept = 0;
  // Few tokens hold most of the weight as a rule: sort only as far as needed.
  for (std::size_t batch = 64; kept < candidates.size(); ++kept) {
    if (kept == sorted) {
      sort_first(candidates, sorted, batch);
      sorted = std::min(sorted + batch, candidates.size());
      batch *= 8;
    }
    sum += static_cast<double>(candidates[kept].weight);
    if (sum >= wanted) {
      ++kept;
      break;
    }
  }
  candidates.resize(kept);
}

/// Steps 6 to 10 for a temperature above 0. @param greatest of the logits, finite
token_id draw(const sampling_settings& settings, float greatest, double random, sampler_scratch& scratch) {
  const auto& logits = scratch.logits;
  auto& weights = scratch.weights;
  weights.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i)
    weights[i] = exp_nonpositive((logits[i] - greatest) / settings.temperature);

  auto& candidates = scratch.candidates;
  candidates.clear();
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (weights[i] > 0)
      candidates.push_back({logits[i], static_cast<token_id>(i), weights[i]});

  if (settings.top_k > 0 && settings.top_k < candidates.size()) {
    sort_first(candidates, 0, settings.top_k);
    candidates.resize(settings.top_k);
    sort_by_id(candidates);
  }
  if (settings.top_p < 1.0F) {
    keep_top_p(candidates, settings.top_p, sum_of_weights(candidates));
    sort_by_id(candidates);
  }
  if (settings.min_p > 0.0F) // the greatest weight is 1
    std::erase_if(candidates, [&](const candidate& each) { return each.weight < settings.min_p; });

  // The token of the greatest logit has weight 1 and passes every filter.
  GODWIT_CHECK(!candidates.empty());
  const double target = random * sum_of_weights(candidates);
  double sum = 0;
  for (const auto& each : candidates) {
    sum += static_cast<double>(each.weight);
    if (sum > target)
      return each.token;
  }
  return candidates.back().token;
}

} // namespace

sampled sample(std::span<const float> logits, const sampling_settings& settings, position_t position,
  std::span<const token_id> context, std::uint32_t prompt_length, sampler_scratch& scratch) {
  GODWIT_CHECK(!logits.empty());
  adjust(logits, settings, context, prompt_length, scratch);
  sampled out;
  const auto best = greatest_index(scratch.logits);
  const float greatest = scratch.logits[best];
  if (settings.temperature == 0 || greatest == -infinity)
    out.token = static_cast<token_id>(best);
  else
    out.token = draw(settings, greatest, uniform_at(settings.seed, position), scratch);
  if (settings.logprobs || settings.top_logprobs > 0)
    report(logits, settings, out, scratch);
  return out;
}

} // namespace godwit
