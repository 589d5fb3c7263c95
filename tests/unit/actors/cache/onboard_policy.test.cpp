#include "actors/cache/onboard_policy.hpp"

#include <catch2/catch.hpp>

using namespace godwit;

namespace {

/// Measurements until the averages stand where they tend to.
onboard_policy measured(double host_block, double disk_block, double token) {
  onboard_policy policy(onboarding::measured, 4096, 1000);
  for (int i = 0; i < 100; ++i) {
    policy.host_took(10, 10 * host_block);
    policy.disk_took(10, 10 * disk_block);
    policy.prefill_took(100, 100 * token);
  }
  return policy;
}

} // namespace

TEST_CASE("until a prompt was computed here, everything is brought back") {
  const onboard_policy policy(onboarding::measured, 4096, 1000);
  const auto all = policy.choose(3, 5, 7, 100);
  CHECK(all.host == 5);
  CHECK(all.disk == 7);
  CHECK(all.compute == 0);
}

TEST_CASE("until the disk was read, what is assumed of it does not make anything be computed") {
  // A processor that computes a block in a fraction of the time that is assumed of any disk.
  onboard_policy policy(onboarding::measured, 4096, 100'000'000);
  for (int i = 0; i < 100; ++i)
    policy.prefill_took(100, 100 * 1e-3);
  const auto unread = policy.choose(0, 0, 40, 0);
  CHECK(unread.disk == 40);
  CHECK(unread.gap == 0);
  policy.disk_took(1, 0.75);
  const auto slow = policy.choose(0, 0, 40, 0);
  CHECK(slow.disk < 40);
}

TEST_CASE("blocks are brought back only when that takes less than computing them") {
  // A block of 16 tokens takes 16 ms to compute near the beginning.
  auto both = measured(1e-3, 5e-3, 1e-3).choose(0, 10, 10, 0);
  CHECK(both.host == 10);
  CHECK(both.disk == 10);
  CHECK(both.seconds == Approx(0.06));
  // So few that nothing can be done beside reading them.
  auto host = measured(1e-3, 50e-3, 1e-3).choose(0, 10, 4, 0);
  CHECK(host.host == 10);
  CHECK(host.disk == 0);
  auto none = measured(20e-3, 50e-3, 1e-3).choose(0, 10, 4, 0);
  CHECK(none.host + none.disk == 0);
  // The same, but the lane is busy for longer than computing takes.
  CHECK(measured(1e-3, 5e-3, 1e-3).choose(0, 10, 0, 1).host == 0);
}

TEST_CASE("what stands behind a long text costs more to compute, and is worth more to bring") {
  const auto policy = measured(1e-3, 20e-3, 1e-3);
  CHECK(policy.choose(0, 0, 1, 0).disk == 0);
  // At twice the doubling length a token costs three times as much.
  CHECK(policy.choose(512, 0, 1, 0).disk == 1);
  CHECK(policy.choose(512, 0, 1, 0).compute == Approx(16 * 3e-3).epsilon(0.01));
}

TEST_CASE("the work of tokens is the sum of what each costs") {
  const onboard_policy policy(onboarding::measured, 100, 1000);
  double sum = 0;
  for (int i = 40; i < 47; ++i)
    sum += 1 + i / 100.0;
  CHECK(policy.work_of(40, 7) == Approx(sum));
  CHECK(policy.work_of(40, 0) == 0);
}

TEST_CASE("who says always gets everything") {
  onboard_policy policy(onboarding::always, 4096, 1000);
  policy.prefill_took(1e9, 1e-9);
  policy.disk_took(1, 100);
  CHECK(policy.choose(0, 1, 1, 100).disk == 1);
}

TEST_CASE("a disk that becomes slow is noticed within a few reads") {
  auto policy = measured(1e-3, 1e-3, 1e-3);
  REQUIRE(policy.choose(0, 0, 4, 0).disk == 4);
  for (int i = 0; i < 3; ++i)
    policy.disk_took(10, 1);
  CHECK(policy.choose(0, 0, 4, 0).disk == 0);
}

TEST_CASE(
  "the first blocks are computed while those behind them are read, so many that all is there soonest") {
  const std::uint32_t depth = GENERATE(0, 100);
  const std::uint32_t host = GENERATE(0, 6);
  const double disk_block = GENERATE(8e-3, 16e-3, 60e-3);
  const double wait = GENERATE(0.0, 0.05);
  constexpr std::uint32_t disk = 40;
  const auto policy = measured(1e-3, disk_block, 1e-3);
  const auto made = policy.choose(depth, host, disk, wait);
  INFO("depth " << depth << ", host " << host << ", a block of disk " << disk_block << ", wait " << wait);
  // By trying all.
  const auto compute = [&](std::uint32_t from, std::uint32_t blocks) {
    return policy.work_of(std::uint64_t{from} * 16, std::uint64_t{blocks} * 16) * 1e-3;
  };
  double best = 1e9;
  for (std::uint32_t gap = 4; gap < disk; ++gap)
    best = std::min(best, std::max((host > 0 ? wait + host * 1e-3 : 0) + compute(depth + host, gap),
                            wait + (disk - gap) * disk_block));
  CHECK(made.host == host);
  CHECK(made.gap >= 4);
  CHECK(made.gap + made.disk == disk);
  CHECK(made.seconds == Approx(best).epsilon(1e-3));
  CHECK(made.compute == Approx(compute(depth, host + disk)).epsilon(1e-3));
  // Sooner than either alone.
  CHECK(made.seconds < wait + host * 1e-3 + disk * disk_block);
  CHECK(made.seconds < made.compute);
}

TEST_CASE("nothing is computed that a fast disk brings in a fraction of the time") {
  // Of 16 ms a block that computing takes, reading would save 3.
  CHECK(measured(1e-3, 3e-3, 1e-3).choose(0, 0, 40, 0).gap == 0);
  CHECK(measured(1e-3, 3e-3, 1e-3).choose(0, 0, 40, 0).disk == 40);
  CHECK(measured(1e-3, 6e-3, 1e-3).choose(0, 0, 40, 0).gap > 0);
  // Nor before anything was measured.
  CHECK(onboard_policy(onboarding::measured, 4096, 1U << 30).choose(0, 0, 40, 0).gap == 0);
}
