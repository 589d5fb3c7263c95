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
  if (blocks > 0)
    average(disk_block_, seconds / blocks);
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
    return choice{from_host, from_disk, wait + from_host * host_block_ + from_disk * disk_block_,
      compute(depth, from_host + from_disk)};
  };
  const auto all = expect(host, disk);
  if (mode_ == onboarding::always || !work_)
    return all;
  const auto some = expect(host, 0);
  const auto gain = [](const choice& one) { return one.compute - one.seconds; };
  const auto& best = gain(all) > gain(some) ? all : some;
  return gain(best) > 0 ? best : choice{};
}

} // namespace godwit
