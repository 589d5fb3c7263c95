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

TEST_CASE("blocks are brought back only when that takes less than computing them") {
  // A block of 16 tokens takes 16 ms to compute near the beginning.
  auto both = measured(1e-3, 5e-3, 1e-3).choose(0, 10, 10, 0);
  CHECK(both.host == 10);
  CHECK(both.disk == 10);
  CHECK(both.seconds == Approx(0.06));
  auto host = measured(1e-3, 50e-3, 1e-3).choose(0, 10, 10, 0);
  CHECK(host.host == 10);
  CHECK(host.disk == 0);
  auto none = measured(20e-3, 50e-3, 1e-3).choose(0, 10, 10, 0);
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
  REQUIRE(policy.choose(0, 0, 10, 0).disk == 10);
  for (int i = 0; i < 3; ++i)
    policy.disk_took(10, 1);
  CHECK(policy.choose(0, 0, 10, 0).disk == 0);
}
