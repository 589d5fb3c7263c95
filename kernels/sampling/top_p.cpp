#include "kernels/sampling/top_p.hpp"

#include "kernels/sampling/candidates.hpp"

#include <array>
#include <cmath>
#include <iterator>

namespace godwit::detail {
namespace {

/// The leading 14 bits: eight buckets together.
std::size_t group_of(float weight) {
  return std::bit_cast<std::uint32_t>(weight) >> 19;
}

float least_of_group(std::size_t group) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(group << 19));
}

/// The group of buckets in which the sum of the greatest weights about reaches its goal. Sums are taken where
/// they are cheap: in blocks that have such weights at all.
std::size_t search_group(double wanted, double whole, const sampler_scratch& scratch) {
  constexpr std::size_t four_octaves = 4 * 16;
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
  while (low == 1 && high > 1 + four_octaves)
    look(high - four_octaves);
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
/// first of the last one, until the sum reaches its goal.
/// @param sum     of what is above the group
/// @param reaches whether a sum reaches the goal
/// @returns how many of them stay; those come first
template <class Reaches>
std::size_t keep_of_group(double sum, std::vector<candidate>& group, Reaches reaches) {
  constexpr std::size_t buckets = 8;
  const auto place = [](const candidate& each) { return bucket_of(each.weight) % buckets; };
  std::array<double, buckets> sums{};
  for (const auto& each : group)
    sums[place(each)] += static_cast<double>(each.weight);
  std::size_t last = buckets - 1;
  for (; last > 0 && !reaches(sum + sums[last]); --last)
    sum += sums[last];
  const auto border =
    std::partition(group.begin(), group.end(), [&](const candidate& each) { return place(each) > last; });
  const auto behind =
    std::partition(border, group.end(), [&](const candidate& each) { return place(each) == last; });
  std::sort(border, behind, before);
  auto kept = border;
  for (; kept != behind && !reaches(sum); ++kept)
    sum += static_cast<double>(kept->weight);
  return static_cast<std::size_t>(kept - group.begin());
}

/// Steps 8 and 9. Weights that do not stay become 0, or are left below the number that is returned; those do
/// not count in the sums of blocks.
/// @param how   made the weights
/// @param whole their sum
/// @returns the least weight that stays
float keep_likely(std::span<const float> logits, const vocabulary::weighing& how, double whole,
  const sampling_settings& settings, sampler_scratch& scratch) {
  const auto blocks = scratch.block_sums.size();
  scratch.sums_above.resize(blocks);
  scratch.between.resize(scratch.weights.size());
  weigh_greatest(how, scratch);

  const double wanted = static_cast<double>(settings.top_p) * whole;
  const auto sums_from = [&](vocabulary::border limits) {
    return vocabulary::sums_from(scratch.weights, scratch.block_weights, limits, scratch.block_sums.data(),
      scratch.sums_above.data(), scratch.between.data());
  };
  std::size_t group = search_group(wanted, whole, scratch);
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
  const auto kept = keep_of_group(above, border, [&](double sum) { return sum >= wanted; });
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

/// By how much of the whole sums of the same weights in double may differ, whatever their orders, with much
/// to spare: each of at most 2^24 additions rounds to 2^-53 of it.
constexpr double order_error = 1e-8;

/// Answers for sums that have errors, and notes where one of them might decide.
class goal {
 public:
  goal(double wanted, double error) : low_{wanted * (1 - error)}, high_{wanted * (1 + error)} {}

  bool reached_by(double sum) {
    unclear_ = unclear_ || (sum > low_ && sum < high_);
    return sum >= high_;
  }
  bool unclear() const { return unclear_; }

 private:
  double low_;
  double high_;
  bool unclear_ = false;
};

/// Step 8 for the candidates of one group, as above.
/// @param above of what is above the group
/// @param all   with the group
/// @returns how many of them stay, or nothing where an error decides or it is another group
std::optional<std::size_t> keep_clearly(double above, double all, goal top, std::vector<candidate>& group) {
  if (top.reached_by(above) || !top.reached_by(all))
    return std::nullopt;
  const auto kept = keep_of_group(above, group, [&](double sum) { return top.reached_by(sum); });
  return top.unclear() ? std::nullopt : std::optional{kept};
}

/// Step 10 over weights of at least a limit, whose blocks have sums. @returns the place, or nothing where an
/// error decides
std::optional<std::size_t> walk_clearly(
  std::span<const float> weights, float limit, double random, std::span<const double> sums) {
  const double whole = sum_of(sums);
  const double target = random * whole;
  const double error = order_error * whole;
  double sum = 0;
  std::size_t block = 0;
  for (; block + 1 < sums.size() && sum + sums[block] <= target; ++block)
    sum += sums[block];
  for (std::size_t i = block * vocabulary::block; i < weights.size(); ++i) {
    const double old = sum;
    sum += weights[i] >= limit ? static_cast<double>(weights[i]) : 0;
    if (sum > target)
      return sum > target + error && old < target - error ? std::optional{i} : std::nullopt;
  }
  return std::nullopt;
}

/// The place of the set bit that has `rank` others before it.
token_id place_of(std::span<const std::uint64_t> bits, std::size_t rank) {
  std::size_t word = 0;
  for (auto here = std::popcount(bits[word]); static_cast<std::size_t>(here) <= rank;
       here = std::popcount(bits[word])) {
    rank -= static_cast<std::size_t>(here);
    ++word;
  }
  auto left = bits[word];
  for (; rank > 0; --rank)
    left &= left - 1;
  return static_cast<token_id>(word * 64) + static_cast<token_id>(std::countr_zero(left));
}

/// Exact weights of what may weigh at least `least`, those of less as 0, and the sums of their blocks.
std::span<float> weigh_likely(
  std::span<const float> logits, const vocabulary::weighing& how, float least, sampler_scratch& scratch) {
  scratch.likely.resize(scratch.block_weights.size() * vocabulary::block / 64);
  scratch.likely_logits.resize(logits.size() + 16);
  scratch.likely_weights.resize(logits.size());
  // An estimated weight is within 2^-14 of it.
  constexpr float slack = 1 - 0x1p-12F;
  const auto count = vocabulary::gather(scratch.weights, scratch.block_weights, least * slack, logits,
    scratch.likely.data(), scratch.likely_logits.data());
  const auto weights = std::span(scratch.likely_weights).first(count);
  scratch.block_sums.resize(vocabulary::blocks_of(count));
  vocabulary::weigh(std::span<const float>(scratch.likely_logits).first(count),
    {how.greatest, how.temperature, least}, weights.data(), scratch.block_sums.data());
  return weights;
}

} // namespace

weight_sum estimate_weights(
  std::span<const float> logits, const vocabulary::weighing& how, sampler_scratch& scratch) {
  scratch.weights.resize(logits.size());
  const double sum = vocabulary::estimate(logits, how, scratch.weights.data());
  return {sum, vocabulary::estimate_error(how)};
}

weight_sum compute_weights(
  std::span<const float> logits, const vocabulary::weighing& how, sampler_scratch& scratch) {
  scratch.weights.resize(logits.size());
  scratch.block_sums.resize(scratch.block_greatest.size());
  vocabulary::weigh(logits, how, scratch.weights.data(), scratch.block_sums.data());
  return {sum_of(scratch.block_sums)};
}

std::optional<token_id> draw_likely(std::span<const float> logits, const vocabulary::weighing& how,
  const weight_sum& whole, const sampling_settings& settings, double random, sampler_scratch& scratch) {
  weigh_greatest(how, scratch);
  const auto& most = scratch.block_weights;
  const double wanted = static_cast<double>(settings.top_p) * whole.value;
  const std::size_t group = search_group(wanted, whole.value, scratch);
  const float least = least_of_group(group);
  const auto weights = weigh_likely(logits, how, least, scratch);
  auto& sums = scratch.block_sums;

  scratch.between.resize(logits.size());
  scratch.likely_most.assign(sums.size(), 1);
  const auto count = vocabulary::find(
    weights, scratch.likely_most, {least, least_of_group(group + 1)}, scratch.between.data());
  auto& border = scratch.border;
  border.clear();
  double border_sum = 0;
  // Places among these stand for ids, in the same order.
  for (const auto place : std::span(scratch.between).first(count)) {
    border.push_back({tamed(scratch.likely_logits[place]), place, weights[place]});
    border_sum += static_cast<double>(weights[place]);
  }
  const double all = sum_of(sums);
  auto kept = keep_clearly(all - border_sum, all, {wanted, whole.error + order_error}, border);
  if (!kept && whole.error > 0) {
    scratch.sums_above.resize(most.size());
    vocabulary::sum(logits, most, how, scratch.sums_above.data());
    const double exact = static_cast<double>(settings.top_p) * sum_of(scratch.sums_above);
    kept = keep_clearly(all - border_sum, all, {exact, order_error}, border);
  }
  if (!kept)
    return std::nullopt;
  for (const auto& each : std::span(border).subspan(*kept)) {
    weights[each.token] = 0;
    sums[each.token / vocabulary::block] -= static_cast<double>(each.weight);
  }
  if (settings.min_p > least)
    for (std::size_t block = 0; block < sums.size(); ++block)
      sums[block] = vocabulary::sum_from(block_of(std::span<const float>(weights), block), settings.min_p);
  const auto place = walk_clearly(weights, std::max(least, settings.min_p), random, sums);
  return place ? std::optional{place_of(scratch.likely, *place)} : std::nullopt;
}

token_id draw_likely_in_order(std::span<const float> logits, const vocabulary::weighing& how,
  const sampling_settings& settings, double random, sampler_scratch& scratch) {
  const float least = keep_likely(logits, how, sum_of(scratch.block_sums), settings, scratch);
  std::array<float, vocabulary::block> weights;
  return walk_blocks(sum_of(scratch.block_sums), random, scratch.block_sums, [&](std::size_t block) {
    const auto part = block_of(std::span<const float>(scratch.weights), block);
    std::ranges::transform(part, weights.begin(), [&](float weight) { return weight >= least ? weight : 0; });
    return std::span(weights).first(part.size());
  });
}

} // namespace godwit::detail
