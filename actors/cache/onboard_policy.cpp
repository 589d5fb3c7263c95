#include "actors/cache/onboard_policy.hpp"

#include "kernels/memory/kv_layout.hpp"

#include <algorithm>

namespace godwit {
namespace {

// Of a tier that was never read: what a slow machine reaches.
constexpr double assumed_host_rate = 1e9; // bytes per second
constexpr double assumed_disk_rate = 1e8;

/// Weight of the newest measurement: a disk that becomes slow is noticed within a few reads, and one slow
/// read alone changes little.
constexpr double newest = 0.25;

/// Blocks that are worth a step of their own.
constexpr std::uint32_t least_gap = 4;
/// What a second of computing has to save.
constexpr double worthwhile = 0.25;

void average(double& mean, double value) {
  mean += newest * (value - mean);
}

} // namespace

onboard_policy::onboard_policy(onboarding mode, std::uint32_t doubles_at, std::uint64_t block_bytes)
  : mode_(mode), doubles_at_(std::max(doubles_at, 1U)),
    host_block_(static_cast<double>(block_bytes) / assumed_host_rate),
    disk_block_(static_cast<double>(block_bytes) / assumed_disk_rate) {}

void onboard_policy::host_took(std::uint32_t blocks, double seconds) {
  if (blocks > 0)
    average(host_block_, seconds / blocks);
}

void onboard_policy::disk_took(std::uint32_t blocks, double seconds) {
  if (blocks == 0)
    return;
  average(disk_block_, seconds / blocks);
  disk_known_ = true;
}

void onboard_policy::prefill_took(double work, double seconds) {
  if (work <= 0)
    return;
  if (work_)
    average(*work_, seconds / work);
  else
    work_ = seconds / work;
}

double onboard_policy::work_of(std::uint64_t first, std::uint64_t tokens) const {
  const auto count = static_cast<double>(tokens);
  const auto before = static_cast<double>(first) * count + count * (count - 1) / 2;
  return tokens == 0 ? 0 : count + before / doubles_at_;
}

double onboard_policy::compute(std::uint32_t depth, std::uint32_t blocks) const {
  return work_of(std::uint64_t{depth} * page_tokens, std::uint64_t{blocks} * page_tokens) * work_.value_or(0);
}

onboard_policy::choice onboard_policy::choose(
  std::uint32_t depth, std::uint32_t host, std::uint32_t disk, double wait) const {
  const auto expect = [&](std::uint32_t from_host, std::uint32_t from_disk) {
    return choice{
      from_host, 0, from_disk, wait + reading(from_host, from_disk), compute(depth, from_host + from_disk)};
  };
  auto all = expect(host, disk);
  if (mode_ == onboarding::halved && disk > 1) {
    all.gap = disk / 2;
    all.disk -= all.gap;
  }
  // A disk that was never read is read: what is assumed of it is no reason to compute anything.
  if (mode_ != onboarding::measured || !work_ || (disk > 0 && !disk_known_))
    return all;
  const auto some = expect(host, 0);
  const auto gain = [](const choice& one) { return one.compute - one.seconds; };
  auto best = gain(all) > gain(some) ? all : some;
  if (gain(best) <= 0)
    best = {};
  if (const auto both = overlapped(depth, host, disk, wait); both.gap > 0) {
    // Until everything is there, whoever brings it, and how much of that is computed.
    const auto rest = compute(depth + best.host + best.disk, host + disk - best.host - best.disk);
    const auto saved = best.seconds + rest - both.seconds;
    if (saved > 0 && saved >= worthwhile * (compute(depth + host, both.gap) - rest))
      return both;
  }
  return best;
}

/// So many of the cold tier's first blocks are computed that they are there when the others are. Those of the
/// host come before them, on a lane of their own.
onboard_policy::choice onboard_policy::overlapped(
  std::uint32_t depth, std::uint32_t host, std::uint32_t disk, double wait) const {
  if (disk <= least_gap)
    return {};
  const auto before = host > 0 ? wait + reading(host, 0) : 0;
  const auto computed = [&](std::uint32_t gap) { return before + compute(depth + host, gap); };
  const auto read = [&](std::uint32_t gap) { return wait + reading(0, disk - gap); };
  // The first gap that takes as long as reading the rest: computing grows with it, reading shrinks.
  std::uint32_t low = least_gap;
  std::uint32_t high = disk - 1;
  while (low < high) {
    const auto middle = low + (high - low) / 2;
    if (computed(middle) < read(middle))
      low = middle + 1;
    else
      high = middle;
  }
  const auto time = [&](std::uint32_t gap) { return std::max(computed(gap), read(gap)); };
  const auto gap = low > least_gap && time(low - 1) < time(low) ? low - 1 : low;
  return {host, gap, disk - gap, time(gap), compute(depth, host + disk)};
}

} // namespace godwit
