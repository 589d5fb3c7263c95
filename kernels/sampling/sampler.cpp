#include "kernels/sampling/sampler.hpp"

#include "kernels/sampling/elementary.hpp"
#include "kernels/sampling/philox.hpp"
#include "messages/check.hpp"

#include <algorithm>
#include <array>
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

/// The greatest of tamed logits. Lanes, so that it becomes vector code; the greatest does not depend on them.
float greatest_of(std::span<const float> logits) {
  constexpr std::size_t lanes = 16;
  std::array<float, lanes> most;
  most.fill(-infinity);
  std::size_t i = 0;
  for (; i + lanes <= logits.size(); i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane)
      most[lane] = logits[i + lane] > most[lane] ? logits[i + lane] : most[lane];
  float greatest = *std::ranges::max_element(most);
  for (; i < logits.size(); ++i)
    greatest = std::max(greatest, logits[i]);
  return greatest;
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
  const float greatest = greatest_of(tame);
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

/// Step 7: the first `k` logits in their order. @pre k < logits.size()
void take_top_k(std::span<const float> logits, std::size_t k, std::vector<candidate>& out) {
  out.clear();
  const auto at = [&](std::size_t i) { return candidate{logits[i], static_cast<token_id>(i), 0}; };
  if (k > 1024) {
    for (std::size_t i = 0; i < logits.size(); ++i)
      out.push_back(at(i));
    sort_first(out, 0, k);
    out.resize(k);
    return;
  }
  // A heap of the k best so far, the worst of them in front.
  for (std::size_t i = 0; i < k; ++i)
    out.push_back(at(i));
  std::ranges::make_heap(out, before);
  for (std::size_t i = k; i < logits.size(); ++i)
    if (logits[i] > out.front().logit) { // an equal one has a higher id, and so comes after
      std::ranges::pop_heap(out, before);
      out.back() = at(i);
      std::ranges::push_heap(out, before);
    }
}

/// Fills `out` with what may pass top_p: tokens so unlikely that all of them together are less than what it
/// cuts off are left out. Half of that, so that no rounding decides.
void take_likely(const sampler_scratch& scratch, float top_p, double whole, std::vector<candidate>& out) {
  const double share =
    (1.0 - static_cast<double>(top_p)) * whole / static_cast<double>(scratch.weights.size());
  const auto least = static_cast<float>(share / 2);
  out.clear();
  for (std::size_t i = 0; i < scratch.weights.size(); ++i)
    if (scratch.weights[i] > least)
      out.push_back({scratch.logits[i], static_cast<token_id>(i), scratch.weights[i]});
}

/// Step 10 over tokens by ascending id. @param weight_of gives the weight of an element of `tokens`, 0 if it
/// was filtered out @returns the index of the chosen element
template <class Tokens, class WeightOf>
std::size_t walk(const Tokens& tokens, double random, WeightOf weight_of) {
  double whole = 0;
  for (const auto& each : tokens)
    whole += static_cast<double>(weight_of(each));
  const double target = random * whole;
  double sum = 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const float weight = weight_of(tokens[i]);
    sum += static_cast<double>(weight);
    if (sum > target)
      return i;
    last = weight > 0 ? i : last;
  }
  return last;
}

/// Steps 6 to 10 for a temperature above 0. @param greatest of the logits, finite
token_id draw(const sampling_settings& settings, float greatest, double random, sampler_scratch& scratch) {
  const auto& logits = scratch.logits;
  auto& weights = scratch.weights;
  auto& candidates = scratch.candidates;
  const auto weight_of = [&](float logit) {
    return exp_nonpositive((logit - greatest) / settings.temperature);
  };
  const auto by_id = [&] { std::ranges::sort(candidates, {}, &candidate::token); };

  const bool few = settings.top_k > 0 && settings.top_k < logits.size();
  if (few) {
    take_top_k(logits, settings.top_k, candidates);
    by_id();
    for (auto& each : candidates)
      each.weight = weight_of(each.logit);
  } else {
    weights.resize(logits.size());
    std::ranges::transform(logits, weights.begin(), weight_of);
  }

  // The token of the greatest logit has weight 1 and passes every filter.
  const auto unless_min_p = [&](float weight) { return weight >= settings.min_p ? weight : 0; };
  if (!few && !(settings.top_p < 1.0F))
    return static_cast<token_id>(walk(weights, random, unless_min_p));

  if (settings.top_p < 1.0F) {
    double whole = 0;
    if (few)
      for (const auto& each : candidates)
        whole += static_cast<double>(each.weight);
    else
      for (const auto weight : weights)
        whole += static_cast<double>(weight);
    if (!few)
      take_likely(scratch, settings.top_p, whole, candidates);
    keep_top_p(candidates, settings.top_p, whole);
    by_id();
  }
  return candidates[walk(candidates, random, [&](const candidate& c) { return unless_min_p(c.weight); })]
    .token;
}

} // namespace

sampled sample(std::span<const float> logits, const sampling_settings& settings, position_t position,
  std::span<const token_id> context, std::uint32_t prompt_length, sampler_scratch& scratch) {
  GODWIT_CHECK(!logits.empty());
  adjust(logits, settings, context, prompt_length, scratch);
  sampled out;
  const float greatest = greatest_of(scratch.logits);
  if (settings.temperature == 0 || greatest == -infinity)
    out.token = static_cast<token_id>(std::ranges::find(scratch.logits, greatest) - scratch.logits.begin());
  else
    out.token = draw(settings, greatest, uniform_at(settings.seed, position), scratch);
  if (settings.logprobs || settings.top_logprobs > 0)
    report(logits, settings, out, scratch);
  return out;
}

} // namespace godwit
