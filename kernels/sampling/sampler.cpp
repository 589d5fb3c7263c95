#include "kernels/sampling/sampler.hpp"

#include "kernels/sampling/candidates.hpp"
#include "kernels/sampling/elementary.hpp"
#include "kernels/sampling/philox.hpp"
#include "kernels/sampling/top_p.hpp"
#include "kernels/sampling/vocabulary.hpp"
#include "messages/check.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

namespace godwit {
namespace {

using namespace detail;

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// Fills the greatest of each block. @returns the greatest of all
float greatest_of(std::span<const float> logits, sampler_scratch& scratch) {
  scratch.block_greatest.resize(vocabulary::blocks_of(logits.size()));
  vocabulary::greatest_of(logits, scratch.block_greatest.data());
  return *std::ranges::max_element(scratch.block_greatest);
}

/// Fills the sums of blocks, and of each block the greatest weight. @returns the sum of all
double sum(std::span<const float> logits, const vocabulary::weighing& how, sampler_scratch& scratch) {
  scratch.block_sums.resize(scratch.block_greatest.size());
  weigh_greatest(how, scratch);
  vocabulary::sum(logits, scratch.block_weights, how, scratch.block_sums.data());
  return sum_of(scratch.block_sums);
}

/// The first token with the greatest logit.
token_id first_of(std::span<const float> logits, float greatest, const sampler_scratch& scratch) {
  const auto block = std::ranges::find(scratch.block_greatest, greatest) - scratch.block_greatest.begin();
  const auto from = logits.begin() + block * static_cast<std::ptrdiff_t>(vocabulary::block);
  const auto found = std::find_if(from, logits.end(), [&](float logit) { return tamed(logit) == greatest; });
  return static_cast<token_id>(found - logits.begin());
}

bool changes_logits(const sampling_settings& settings) {
  return !settings.bias.empty() || settings.repeat_penalty != 1.0F || settings.frequency_penalty != 0
         || settings.presence_penalty != 0;
}

/// Steps 3 to 5. @returns the new logits, in scratch memory
std::span<const float> adjust(std::span<const float> logits, const sampling_settings& settings,
  std::span<const token_id> context, std::uint32_t prompt_length, sampler_scratch& scratch) {
  auto& out = scratch.logits;
  out.assign(logits.begin(), logits.end());
  for (const auto& [token, bias] : settings.bias) {
    GODWIT_CHECK(token < out.size());
    out[token] = tamed(tamed(out[token]) + bias);
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
        out[token] = tamed(change(tamed(out[token]), times));
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
  return out;
}

/// Step 7: the first `k` logits, in any order. @pre 0 < k < logits.size()
void take_top_k(std::span<const float> logits, std::size_t k, sampler_scratch& scratch) {
  auto& out = scratch.candidates;
  out.clear();
  const auto at = [&](std::size_t i) { return candidate{tamed(logits[i]), static_cast<token_id>(i), 0}; };
  if (k > 1024) {
    for (std::size_t i = 0; i < logits.size(); ++i)
      out.push_back(at(i));
    std::ranges::nth_element(out, out.begin() + static_cast<std::ptrdiff_t>(k), before);
    out.resize(k);
    return;
  }
  // As many blocks have a logit of at least the k-th greatest of theirs.
  const auto blocks = scratch.block_greatest.size();
  if (k <= blocks) {
    auto& greatest = scratch.block_weights;
    greatest = scratch.block_greatest;
    const auto kth = greatest.begin() + static_cast<std::ptrdiff_t>(k) - 1;
    std::ranges::nth_element(greatest, kth, std::greater{});
    if (*kth > -infinity) {
      auto& ids = scratch.between;
      ids.resize(logits.size());
      const auto count = vocabulary::find(logits, scratch.block_greatest, {*kth, not_a_number}, ids.data());
      for (const auto id : std::span(ids).first(count))
        out.push_back(at(id));
      std::ranges::nth_element(out, out.begin() + static_cast<std::ptrdiff_t>(k), before);
      out.resize(k);
      return;
    }
  }
  std::size_t i = 0;
  for (; i < k; ++i)
    out.push_back(at(i));
  std::ranges::make_heap(out, before);
  while (i < logits.size()) {
    const auto block = i / vocabulary::block;
    const auto end = std::min((block + 1) * vocabulary::block, logits.size());
    // An equal one has a higher id, and so comes after.
    if (scratch.block_greatest[block] > out.front().logit)
      for (; i < end; ++i)
        if (tamed(logits[i]) > out.front().logit) {
          std::ranges::pop_heap(out, before);
          out.back() = at(i);
          std::ranges::push_heap(out, before);
        }
    i = end;
  }
}

/// Step 1, for the chosen token and the most likely ones.
/// @param greatest of the logits; scratch holds that of each block
void report(std::span<const float> logits, float greatest, const sampling_settings& settings, sampled& out,
  sampler_scratch& scratch) {
  if (greatest == -infinity) {
    out.logprob = least_logprob;
    for (token_id token = 0; token < std::min<std::size_t>(settings.top_logprobs, logits.size()); ++token)
      out.top.emplace_back(token, least_logprob);
    return;
  }

  const double whole =
    natural_log(scratch.whole > 0 ? scratch.whole : sum(logits, {.greatest = greatest}, scratch));
  const auto logprob_of = [&](float logit) {
    const double difference = static_cast<double>(logit) - static_cast<double>(greatest) - whole;
    return difference > static_cast<double>(least_logprob) ? static_cast<float>(difference) : least_logprob;
  };

  out.logprob = logprob_of(tamed(logits[out.token]));
  if (settings.top_logprobs == 0)
    return;
  auto& candidates = scratch.candidates;
  if (settings.top_logprobs < logits.size()) {
    take_top_k(logits, settings.top_logprobs, scratch);
  } else {
    candidates.clear();
    for (token_id token = 0; token < logits.size(); ++token)
      candidates.push_back({tamed(logits[token]), token, 0});
  }
  std::ranges::sort(candidates, before);
  for (const auto& each : candidates)
    out.top.emplace_back(each.token, logprob_of(each.logit));
}

/// Step 8 for candidates with weights, by ascending id. Only those of one bucket are sorted: the one in which
/// the sum reaches its goal. @param whole the sum of all weights
void keep_top_p(float top_p, double whole, sampler_scratch& scratch) {
  auto& candidates = scratch.candidates;
  auto& sums = scratch.bucket_sums;
  sums.assign(bucket_of(1.0F) + 1, 0);
  for (const auto& each : candidates)
    sums[bucket_of(each.weight)] += static_cast<double>(each.weight);
  const double wanted = static_cast<double>(top_p) * whole;
  double sum = 0; // of the buckets above the last
  std::size_t last = sums.size() - 1;
  for (; last > 0 && sum + sums[last] < wanted; --last)
    sum += sums[last];

  auto& border = scratch.border;
  border.clear();
  std::ranges::copy_if(candidates, std::back_inserter(border),
    [&](const candidate& each) { return bucket_of(each.weight) == last; });
  std::ranges::sort(border, before);
  std::size_t kept = 0;
  while (kept < border.size() && sum < wanted)
    sum += static_cast<double>(border[kept++].weight);
  // As above: moved down whether it stays or not.
  std::size_t count = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const auto each = candidates[i];
    const auto bucket = bucket_of(each.weight);
    candidates[count] = each;
    const bool stays =
      bucket > last || (bucket == last && (kept == border.size() || before(each, border[kept])));
    count += stays ? 1U : 0U;
  }
  candidates.resize(count);
}

/// Steps 9 and 10 without top_k and top_p. @param how weighs
token_id draw_from_all(std::span<const float> logits, const vocabulary::weighing& how,
  const sampling_settings& settings, double random, sampler_scratch& scratch) {
  const vocabulary::weighing cut{how.greatest, how.temperature, settings.min_p};
  const double whole = sum(logits, cut, scratch);
  std::array<float, vocabulary::block> weights;
  return walk_blocks(whole, random, scratch.block_sums, [&](std::size_t block) {
    const auto part = block_of(logits, block);
    double same_sum = 0;
    vocabulary::weigh(part, cut, weights.data(), &same_sum);
    return std::span(weights).first(part.size());
  });
}

bool wants_logprobs(const sampling_settings& settings) {
  return settings.logprobs || settings.top_logprobs > 0;
}

/// Steps 8 to 10 with top_p.
token_id draw_from_likely(std::span<const float> logits, const vocabulary::weighing& how,
  const sampling_settings& settings, double random, sampler_scratch& scratch) {
  // Log-probabilities need the exact sum of the same weights.
  const bool shared = how.temperature == 1.0F && wants_logprobs(settings);
  if (!shared && vocabulary::can_estimate(how)) {
    const auto whole = estimate_weights(logits, how, scratch);
    if (const auto token = draw_likely(logits, how, whole, settings, random, scratch))
      return *token;
  }
  const auto whole = compute_weights(logits, how, scratch);
  scratch.whole = shared ? whole.value : 0;
  if (shared) {
    if (const auto token = draw_likely(logits, how, whole, settings, random, scratch))
      return *token;
    compute_weights(logits, how, scratch); // for the sums of blocks
  }
  return draw_likely_in_order(logits, how, settings, random, scratch);
}

/// Steps 7 to 10 with it.
token_id draw_from_few(std::span<const float> logits, const vocabulary::weighing& how,
  const sampling_settings& settings, double random, sampler_scratch& scratch) {
  auto& candidates = scratch.candidates;
  take_top_k(logits, settings.top_k, scratch);
  std::ranges::sort(candidates, {}, &candidate::token);
  double whole = 0;
  for (auto& each : candidates) {
    each.weight = exp_nonpositive((each.logit - how.greatest) / how.temperature);
    whole += static_cast<double>(each.weight);
  }
  if (settings.top_p < 1.0F)
    keep_top_p(settings.top_p, whole, scratch);
  // The token of the greatest logit has weight 1 and passes every filter.
  const auto unless_min_p = [&](const candidate& each) {
    return each.weight >= settings.min_p ? each.weight : 0;
  };
  double sum = 0;
  for (const auto& each : candidates)
    sum += static_cast<double>(unless_min_p(each));
  return walk(candidates.begin(), candidates.end(), 0.0, random * sum, unless_min_p)->token;
}

} // namespace

sampled sample(std::span<const float> logits, const sampling_settings& settings, position_t position,
  std::span<const token_id> context, std::uint32_t prompt_length, sampler_scratch& scratch) {
  GODWIT_CHECK(!logits.empty());
  const bool changes = changes_logits(settings);
  const auto used = changes ? adjust(logits, settings, context, prompt_length, scratch) : logits;
  float greatest = greatest_of(used, scratch);
  scratch.whole = 0;
  sampled out;
  if (settings.temperature == 0 || greatest == -infinity) {
    out.token = first_of(used, greatest, scratch);
  } else {
    const auto draw = settings.top_k > 0 && settings.top_k < used.size() ? draw_from_few
                      : settings.top_p < 1.0F                            ? draw_from_likely
                                                                         : draw_from_all;
    out.token = draw(used, {.greatest = greatest, .temperature = settings.temperature}, settings,
      uniform_at(settings.seed, position), scratch);
  }
  if (wants_logprobs(settings)) {
    if (changes) {
      greatest = greatest_of(logits, scratch);
      scratch.whole = 0;
    }
    report(logits, greatest, settings, out, scratch);
  }
  return out;
}

} // namespace godwit
