#include "kernels/sampling/sampler.hpp"

#include "kernels/sampling/elementary.hpp"
#include "kernels/sampling/philox.hpp"
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

/// Fills the greatest of each block. @returns the greatest of all
float greatest_of(std::span<const float> logits, sampler_scratch& scratch) {
  scratch.block_greatest.resize(vocabulary::blocks_of(logits.size()));
  vocabulary::greatest_of(logits, scratch.block_greatest.data());
  return *std::ranges::max_element(scratch.block_greatest);
}

double sum_of_blocks(const sampler_scratch& scratch) {
  return std::accumulate(scratch.block_sums.begin(), scratch.block_sums.end(), 0.0);
}

/// Fills the sums of blocks, and of each block the greatest weight. @returns the sum of all
double sum(std::span<const float> logits, const vocabulary::weighing& how, sampler_scratch& scratch) {
  scratch.block_sums.resize(scratch.block_greatest.size());
  scratch.block_weights.resize(scratch.block_greatest.size());
  scratch.few_sums.resize(vocabulary::blocks_of(scratch.block_greatest.size()));
  // A greater logit has no smaller weight.
  vocabulary::weigh(scratch.block_greatest, how, scratch.block_weights.data(), scratch.few_sums.data());
  vocabulary::sum(logits, scratch.block_weights, how, scratch.block_sums.data());
  return sum_of_blocks(scratch);
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

/// Step 7: the first `k` logits in the order of a heap, the last of them in front. @pre k < logits.size()
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

  const double whole = natural_log(sum(logits, {.greatest = greatest}, scratch));
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

/// The leading 17 bits of a weight's value: 128 buckets for every power of two, in the order of the weights.
std::size_t bucket_of(float weight) {
  return std::bit_cast<std::uint32_t>(weight) >> 16;
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

/// The leading 14 bits: eight buckets together.
std::size_t group_of(float weight) {
  return std::bit_cast<std::uint32_t>(weight) >> 19;
}

float least_of_group(std::size_t group) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(group << 19));
}

template <class Number>
std::span<Number> block_of(std::span<Number> all, std::size_t block) {
  const auto start = block * vocabulary::block;
  return all.subspan(start, std::min(vocabulary::block, all.size() - start));
}

/// The group of buckets in which the sum of the greatest weights about reaches its goal. Sums are taken where
/// they are cheap: in blocks that have such weights at all.
std::size_t guess_group(double wanted, double whole, const sampler_scratch& scratch) {
  constexpr std::size_t two_octaves = 4 * 16;
  // The sum from `low` on reaches the goal, that from `high` on does not.
  std::size_t low = 1; // what is less is zero
  std::size_t high = group_of(1.0F) + 1;
  double low_sum = whole;
  double high_sum = 0;
  // Looks that moved the same end, one after the other: above 0 the low one.
  int same = 0;
  const auto look = [&](std::size_t group) {
    const double sum = static_cast<double>(
      vocabulary::guess_sum(scratch.weights, scratch.block_weights, least_of_group(group)));
    const bool reaches = sum >= wanted;
    (reaches ? low : high) = group;
    (reaches ? low_sum : high_sum) = sum;
    same = reaches ? std::max(same, 0) + 1 : std::min(same, 0) - 1;
  };
  while (low == 1 && high > 1 + two_octaves)
    look(high - two_octaves);
  same = 0;
  while (high - low > 1) {
    // By interpolation, and more and more beyond it while the other end stays where it is.
    const double share = (wanted - high_sum) / (low_sum - high_sum);
    const double below = share * static_cast<double>(high - low) - std::clamp(same, -8, 8);
    const auto most = static_cast<double>(high - low - 1);
    look(high - static_cast<std::size_t>(std::clamp(below, 1.0, most)));
  }
  return low;
}

/// Step 8 for the candidates of one group, whose order becomes any: takes buckets as a whole and then the
/// first of the last one, until the sum reaches its goal. @returns how many of them stay; those come first
std::size_t keep_of_group(double sum, double wanted, std::vector<candidate>& group) {
  constexpr std::size_t buckets = 8;
  const auto place = [](const candidate& each) { return bucket_of(each.weight) % buckets; };
  std::array<double, buckets> sums{};
  for (const auto& each : group)
    sums[place(each)] += static_cast<double>(each.weight);
  std::size_t last = buckets - 1;
  for (; last > 0 && sum + sums[last] < wanted; --last)
    sum += sums[last];
  const auto border =
    std::partition(group.begin(), group.end(), [&](const candidate& each) { return place(each) > last; });
  const auto behind =
    std::partition(border, group.end(), [&](const candidate& each) { return place(each) == last; });
  std::sort(border, behind, before);
  auto kept = border;
  for (; kept != behind && sum < wanted; ++kept)
    sum += static_cast<double>(kept->weight);
  return static_cast<std::size_t>(kept - group.begin());
}

/// Steps 8 and 9 over the whole vocabulary. Weights that do not stay become 0, or are left below the number
/// that is returned; those do not count in the sums of blocks.
/// @param how   made the weights
/// @param whole their sum
/// @returns the least weight that stays
float keep_likely(std::span<const float> logits, const vocabulary::weighing& how, double whole,
  const sampling_settings& settings, sampler_scratch& scratch) {
  const auto blocks = scratch.block_sums.size();
  scratch.block_weights.resize(blocks);
  scratch.sums_above.resize(blocks);
  scratch.between.resize(scratch.weights.size());
  // A greater logit has no smaller weight.
  vocabulary::weigh(scratch.block_greatest, how, scratch.block_weights.data(), scratch.sums_above.data());

  const double wanted = static_cast<double>(settings.top_p) * whole;
  const auto sum_of = [](const std::vector<double>& sums) {
    return std::accumulate(sums.begin(), sums.end(), 0.0);
  };
  const auto sums_from = [&](vocabulary::border limits) {
    return vocabulary::sums_from(scratch.weights, scratch.block_weights, limits, scratch.block_sums.data(),
      scratch.sums_above.data(), scratch.between.data());
  };
  std::size_t group = guess_group(wanted, whole, scratch);
  std::size_t count = 0;
  double above = 0; // the sum of what is above the group
  for (;;) {
    count = sums_from({least_of_group(group), least_of_group(group + 1)});
    above = sum_of(scratch.sums_above);
    if (above >= wanted)
      ++group;
    else if (group > 1 && sum_of(scratch.block_sums) < wanted)
      --group;
    else
      break;
  }

  auto& border = scratch.border;
  border.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const auto token = scratch.between[i];
    border.push_back({tamed(logits[token]), token, scratch.weights[token]});
  }
  const float least = least_of_group(group);
  const auto kept = keep_of_group(above, wanted, border);
  const std::span dropped(border.begin() + static_cast<std::ptrdiff_t>(kept), border.end());
  for (const auto& each : dropped)
    scratch.weights[each.token] = 0;
  if (settings.min_p > least) {
    sums_from({settings.min_p, settings.min_p});
    return settings.min_p;
  }
  // The sums of other blocks are right.
  for (const auto& each : dropped)
    scratch.block_sums[each.token / vocabulary::block] = -1;
  for (std::size_t block = 0; block < blocks; ++block)
    if (scratch.block_sums[block] < 0)
      scratch.block_sums[block] =
        vocabulary::sum_from(block_of(std::span<const float>(scratch.weights), block), least);
  return least;
}

/// Step 10 over [begin, end): the first at which the sum of the weights, counted from `sum`, exceeds the
/// target; else the last that has a weight.
template <class Iterator, class WeightOf>
Iterator walk(Iterator begin, Iterator end, double sum, double target, WeightOf weight_of) {
  auto last = begin;
  for (auto i = begin; i != end; ++i) {
    const float weight = weight_of(*i);
    sum += static_cast<double>(weight);
    if (sum > target)
      return i;
    last = weight > 0 ? i : last;
  }
  return last;
}

/// Step 10 over the whole vocabulary, whose blocks have sums.
/// @param whole     the sum of the blocks
/// @param weights_of gives the weights of a block
template <class WeightsOf>
token_id walk_blocks(double whole, double random, const std::vector<double>& sums, WeightsOf weights_of) {
  const double target = random * whole;
  double before_block = 0;
  double sum = 0;
  std::size_t chosen = 0; // the last that has a weight, unless one is found
  for (std::size_t block = 0; block < sums.size() && sum <= target; ++block) {
    if (sums[block] > 0) {
      chosen = block;
      before_block = sum;
      sum += sums[block];
    }
  }
  const std::span<const float> weights = weights_of(chosen);
  const auto found =
    walk(weights.begin(), weights.end(), before_block, target, [](float weight) { return weight; });
  return static_cast<token_id>(chosen * vocabulary::block) + static_cast<token_id>(found - weights.begin());
}

/// Steps 8 to 10 without top_k. @param how weighs
token_id draw_from_all(std::span<const float> logits, const vocabulary::weighing& how,
  const sampling_settings& settings, double random, sampler_scratch& scratch) {
  std::array<float, vocabulary::block> weights;
  if (settings.top_p >= 1.0F) {
    const vocabulary::weighing cut{how.greatest, how.temperature, settings.min_p};
    const double whole = sum(logits, cut, scratch);
    return walk_blocks(whole, random, scratch.block_sums, [&](std::size_t block) {
      const auto part = block_of(logits, block);
      double same_sum = 0;
      vocabulary::weigh(part, cut, weights.data(), &same_sum);
      return std::span(weights).first(part.size());
    });
  }
  scratch.weights.resize(logits.size());
  scratch.block_sums.resize(scratch.block_greatest.size());
  vocabulary::weigh(logits, how, scratch.weights.data(), scratch.block_sums.data());
  const float least = keep_likely(logits, how, sum_of_blocks(scratch), settings, scratch);
  return walk_blocks(sum_of_blocks(scratch), random, scratch.block_sums, [&](std::size_t block) {
    const auto part = block_of(std::span<const float>(scratch.weights), block);
    std::ranges::transform(part, weights.begin(), [&](float weight) { return weight >= least ? weight : 0; });
    return std::span(weights).first(part.size());
  });
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
  sampled out;
  if (settings.temperature == 0 || greatest == -infinity) {
    out.token = first_of(used, greatest, scratch);
  } else {
    const auto draw = settings.top_k > 0 && settings.top_k < used.size() ? draw_from_few : draw_from_all;
    out.token = draw(used, {.greatest = greatest, .temperature = settings.temperature}, settings,
      uniform_at(settings.seed, position), scratch);
  }
  if (settings.logprobs || settings.top_logprobs > 0) {
    if (changes)
      greatest = greatest_of(logits, scratch);
    report(logits, greatest, settings, out, scratch);
  }
  return out;
}

} // namespace godwit
