#include "kernels/sampling/vocabulary.hpp"
#include "kernels/sampling/elementary.hpp"

#include <catch2/catch.hpp>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

using namespace godwit;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

std::vector<float> noisy_logits(std::size_t size) {
  std::mt19937 random(static_cast<unsigned>(size));
  std::normal_distribution<float> normal(0, 6);
  std::vector<float> logits(size);
  std::ranges::generate(logits, [&] { return normal(random); });
  for (std::size_t i = 3; i < size; i += 97)
    logits[i] = i % 2 == 0 ? std::nanf("") : -infinity;
  return logits;
}

struct passes {
  std::vector<float> tame;
  std::vector<float> greatest;
  std::vector<float> weights;
  std::vector<double> sums;
};

passes run(const std::vector<float>& logits, float temperature, float least) {
  const auto blocks = vocabulary::blocks_of(logits.size());
  passes out{std::vector<float>(logits.size()), std::vector<float>(blocks), std::vector<float>(logits.size()),
    std::vector<double>(blocks)};
  vocabulary::tame(logits, out.tame.data(), out.greatest.data());
  const float most = *std::ranges::max_element(out.greatest);
  vocabulary::weigh(out.tame, most, temperature, least, out.weights.data(), out.sums.data());
  return out;
}

template <class Value>
bool same_bits(const std::vector<Value>& a, const std::vector<Value>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Value)) == 0;
}

/// Lets only one of the machine's instruction sets be used, until it goes.
class forced_target {
 public:
  explicit forced_target(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  ~forced_target() {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

/// Calls `check` once for each of the machine's instruction sets.
template <class Check>
void on_each_target(Check check) {
  auto targets = hwy::SupportedTargets();
  for (std::int64_t target = 1; targets != 0; target <<= 1) {
    if ((targets & target) == 0)
      continue;
    targets &= ~target;
    const forced_target forced(target);
    CAPTURE(hwy::TargetName(target));
    check();
  }
}

} // namespace

TEST_CASE("tame logits have no NaN and no plus infinity, and each block knows its greatest") {
  const std::vector<float> logits{1, std::nanf(""), infinity, -infinity, -2};
  const auto made = run(logits, 1, 0);
  CHECK(made.tame == std::vector<float>{1, -infinity, std::numeric_limits<float>::max(), -infinity, -2});
  CHECK(made.greatest == std::vector<float>{std::numeric_limits<float>::max()});

  const auto noisy = run(noisy_logits(1000), 1, 0);
  REQUIRE(noisy.greatest.size() == 4);
  for (std::size_t block = 0; block < 4; ++block)
    CHECK(
      noisy.greatest[block]
      == *std::max_element(noisy.tame.begin() + static_cast<std::ptrdiff_t>(256 * block),
        noisy.tame.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(256 * block + 256, 1000))));
}

TEST_CASE("weights are the softmax's numerators, and none is below the least") {
  const auto logits = noisy_logits(777);
  const float least = 0.001F;
  const auto made = run(logits, 0.7F, least);
  const float most = *std::ranges::max_element(made.greatest);
  double whole = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double exact = std::exp((static_cast<double>(made.tame[i]) - static_cast<double>(most)) / 0.7F);
    if (exact > 0.001001)
      CHECK(made.weights[i] == Approx(exact).epsilon(1e-5));
    else if (exact < 0.000999)
      CHECK(made.weights[i] == 0.0F);
    whole += static_cast<double>(made.weights[i]);
  }
  CHECK(made.sums[0] + made.sums[1] + made.sums[2] + made.sums[3] == Approx(whole).epsilon(1e-12));
}

TEST_CASE("every instruction set gives the bits of the scalar exp, for every length of the last block") {
  const auto size = GENERATE(1U, 15U, 16U, 17U, 255U, 256U, 257U, 300U, 49152U, 50257U);
  const auto logits = noisy_logits(size);
  const auto expected = run(logits, 0.9F, 0.0F);
  const float most = *std::ranges::max_element(expected.greatest);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < size; ++i)
    wrong += expected.weights[i] == exp_nonpositive((expected.tame[i] - most) / 0.9F) ? 0 : 1;
  CHECK(wrong == 0);
  on_each_target([&] {
    const auto made = run(logits, 0.9F, 0.0F);
    CHECK(same_bits(made.tame, expected.tame));
    CHECK(same_bits(made.greatest, expected.greatest));
    CHECK(same_bits(made.weights, expected.weights));
    CHECK(same_bits(made.sums, expected.sums));
  });
}

TEST_CASE("sums above limits are those of the weights with zeros below, on every instruction set") {
  const auto size = GENERATE(1U, 16U, 255U, 257U, 3000U, 50257U);
  const auto logits = noisy_logits(size);
  const auto made = run(logits, 0.9F, 0.0F);
  const auto blocks = made.greatest.size();
  std::vector<float> most(blocks);
  for (std::size_t i = 0; i < size; ++i)
    most[i / vocabulary::block] = std::max(most[i / vocabulary::block], made.weights[i]);

  for (const auto limits : {vocabulary::border{0.5F, 0.6F}, {1e-3F, 1.1e-3F}, {1e-6F, 1e-5F}, {1e-30F, 1.0F},
         {1.0F, 2.0F}, {0.25F, 0.25F}}) {
    // By `weigh` itself, whose greatest weight below is forbidden; and one by one.
    const auto from_least = run(logits, 0.9F, limits.least).sums;
    const auto from_above = run(logits, 0.9F, limits.above).sums;
    std::vector<std::uint32_t> between;
    double sum = 0;
    for (std::uint32_t i = 0; i < size; ++i) {
      if (made.weights[i] >= limits.least && made.weights[i] < limits.above)
        between.push_back(i);
      sum += made.weights[i] >= limits.least ? static_cast<double>(made.weights[i]) : 0;
    }
    on_each_target([&] {
      std::vector<double> low(blocks, -1);
      std::vector<double> high(blocks, -1);
      std::vector<std::uint32_t> found(size);
      found.resize(vocabulary::sums_from(made.weights, most, limits, low.data(), high.data(), found.data()));
      CHECK(same_bits(low, from_least));
      CHECK(same_bits(high, from_above));
      CHECK(found == between);
      CHECK(vocabulary::guess_sum(made.weights, most, limits.least) == Approx(sum).epsilon(1e-5));
    });
  }
}
