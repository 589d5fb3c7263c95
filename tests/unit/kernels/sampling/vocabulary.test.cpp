#include "kernels/sampling/vocabulary.hpp"
#include "kernels/sampling/elementary.hpp"
#include "tests/unit/kernels/sampling/each_target.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
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

/// What a logit counts as.
float tame(float logit) {
  return std::isnan(logit) ? -infinity : std::min(logit, std::numeric_limits<float>::max());
}

struct passes {
  std::vector<float> greatest;
  std::vector<float> weights;
  std::vector<double> sums;
  float most = 0; ///< of all logits
};

passes run(const std::vector<float>& logits, float temperature, float least) {
  const auto blocks = vocabulary::blocks_of(logits.size());
  passes out{std::vector<float>(blocks), std::vector<float>(logits.size()), std::vector<double>(blocks)};
  vocabulary::greatest_of(logits, out.greatest.data());
  out.most = *std::ranges::max_element(out.greatest);
  vocabulary::weigh(logits, {out.most, temperature, least}, out.weights.data(), out.sums.data());
  return out;
}

/// The greatest weight of each block.
std::vector<float> most_of_blocks(const std::vector<float>& weights) {
  std::vector<float> most(vocabulary::blocks_of(weights.size()));
  for (std::size_t i = 0; i < weights.size(); ++i)
    most[i / vocabulary::block] = std::max(most[i / vocabulary::block], weights[i]);
  return most;
}

template <class Value>
bool same_bits(const std::vector<Value>& a, const std::vector<Value>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Value)) == 0;
}

} // namespace

TEST_CASE("each block knows its greatest logit, where a NaN is the least and infinity the greatest float") {
  std::vector<float> greatest(1);
  const auto greatest_of = [&](std::vector<float> logits) {
    vocabulary::greatest_of(logits, greatest.data());
    return greatest[0];
  };
  CHECK(greatest_of({1, std::nanf(""), -infinity, -2}) == 1);
  CHECK(greatest_of({std::nanf(""), -7}) == -7);
  CHECK(greatest_of({std::nanf(""), -infinity}) == -infinity);
  CHECK(greatest_of({1, infinity, -2}) == std::numeric_limits<float>::max());

  const auto size = GENERATE(1U, 17U, 255U, 1000U, 49152U);
  const auto logits = noisy_logits(size);
  std::vector<float> expected(vocabulary::blocks_of(size), -infinity);
  for (std::size_t i = 0; i < size; ++i)
    expected[i / vocabulary::block] = std::max(expected[i / vocabulary::block], tame(logits[i]));
  on_each_target([&] { CHECK(run(logits, 1, 0).greatest == expected); });
}

TEST_CASE("logits that are no numbers have no weight, and infinity has that of the greatest float") {
  std::vector<float> logits(40, 0);
  logits[3] = infinity;
  logits[7] = std::nanf("");
  logits[20] = -infinity;
  logits[38] = std::numeric_limits<float>::max();
  on_each_target([&] {
    const auto made = run(logits, 0.5F, 0);
    std::vector<float> expected(40, 0);
    expected[3] = expected[38] = 1;
    CHECK(made.weights == expected);
    CHECK(made.sums == std::vector<double>{2});
  });
}

TEST_CASE("weights are the softmax's numerators, and none is below the least") {
  const auto logits = noisy_logits(777);
  const float least = 0.001F;
  const auto made = run(logits, 0.7F, least);
  double whole = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double exact =
      std::exp((static_cast<double>(tame(logits[i])) - static_cast<double>(made.most)) / 0.7F);
    if (exact > 0.001001)
      CHECK(made.weights[i] == Approx(exact).epsilon(1e-5));
    else if (exact < 0.000999)
      CHECK(made.weights[i] == 0.0F);
    whole += static_cast<double>(made.weights[i]);
  }
  CHECK(made.sums[0] + made.sums[1] + made.sums[2] + made.sums[3] == Approx(whole).epsilon(1e-12));
}

TEST_CASE("every instruction set gives the bits of the scalar exp, for every length of the last block") {
  const auto size = GENERATE(1U, 15U, 16U, 17U, 80U, 255U, 256U, 257U, 300U, 49152U, 50257U);
  const auto logits = noisy_logits(size);
  const auto expected = run(logits, 0.9F, 0.0F);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < size; ++i)
    wrong += expected.weights[i] == exp_nonpositive((tame(logits[i]) - expected.most) / 0.9F) ? 0 : 1;
  CHECK(wrong == 0);
  on_each_target([&] {
    const auto made = run(logits, 0.9F, 0.0F);
    CHECK(same_bits(made.greatest, expected.greatest));
    CHECK(same_bits(made.weights, expected.weights));
    CHECK(same_bits(made.sums, expected.sums));
  });
}

TEST_CASE("sums are the stated trees over every eighth weight, with weights or without") {
  const auto size = GENERATE(1U, 17U, 300U, 3000U);
  const auto logits = noisy_logits(size);
  for (const float least : {0.0F, 0.01F, 0.5F}) {
    const auto made = run(logits, 0.9F, least);
    std::vector<double> expected;
    for (std::size_t start = 0; start < size; start += vocabulary::block) {
      double part[8] = {};
      for (std::size_t i = start; i < std::min<std::size_t>(start + vocabulary::block, size); ++i)
        part[i % 8] += static_cast<double>(made.weights[i]);
      expected.push_back(
        ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7])));
    }
    const auto most = most_of_blocks(run(logits, 0.9F, 0).weights);
    on_each_target([&] {
      CHECK(same_bits(run(logits, 0.9F, least).sums, expected));
      std::vector<double> alone(expected.size(), -1);
      vocabulary::sum(logits, most, {made.most, 0.9F, least}, alone.data());
      CHECK(same_bits(alone, expected));
    });
  }
}

TEST_CASE("sums above limits are those of the weights with zeros below, on every instruction set") {
  const auto size = GENERATE(1U, 16U, 255U, 257U, 3000U, 50257U);
  const auto logits = noisy_logits(size);
  const auto made = run(logits, 0.9F, 0.0F);
  const auto blocks = made.greatest.size();
  const auto most = most_of_blocks(made.weights);

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
      for (std::size_t block = 0; block < blocks; ++block) {
        const auto start = block * vocabulary::block;
        const auto part =
          std::span(made.weights).subspan(start, std::min<std::size_t>(vocabulary::block, size - start));
        low[block] = vocabulary::sum_from(part, limits.least);
      }
      CHECK(same_bits(low, from_least));
      CHECK(vocabulary::guess_sum(made.weights, most, limits.least) == Approx(sum).epsilon(1e-5));
    });
  }
}

TEST_CASE("estimated weights and their sum are as near to the exact ones as they are said to be") {
  const auto size = GENERATE(1U, 16U, 257U, 3000U, 49152U, 50257U);
  const auto logits = noisy_logits(size);
  for (const float temperature : {1.0F, 0.7F, 0.05F, 30.0F}) {
    const auto exact = run(logits, temperature, 0.0F);
    const double whole = std::accumulate(exact.sums.begin(), exact.sums.end(), 0.0);
    const vocabulary::weighing how{exact.most, temperature};
    REQUIRE(vocabulary::can_estimate(how));
    on_each_target([&] {
      std::vector<float> about(size, -1);
      const double sum = vocabulary::estimate(logits, how, about.data());
      CHECK(std::abs(sum - whole) <= vocabulary::estimate_error(how) * whole);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < size; ++i)
        wrong += std::abs(about[i] - exact.weights[i]) <= 0x1p-14F * exact.weights[i] ? 0U : 1U;
      CHECK(wrong == 0);
    });
  }
}

TEST_CASE("weights are not estimated where infinities or temperatures would spoil it") {
  CHECK(vocabulary::can_estimate({-3, 1}));
  CHECK_FALSE(vocabulary::can_estimate({std::numeric_limits<float>::max(), 1}));
  CHECK_FALSE(vocabulary::can_estimate({0, 1e-31F}));
  CHECK_FALSE(vocabulary::can_estimate({0, 1e31F}));
}

TEST_CASE("what lies between two limits is found, and what is gathered is what weighs enough") {
  const auto size = GENERATE(1U, 17U, 255U, 3000U, 50257U);
  const auto logits = noisy_logits(size);
  const auto made = run(logits, 0.9F, 0.0F);
  const auto most = most_of_blocks(made.weights);
  const auto nothing = std::nanf("");
  for (const auto limits :
    {vocabulary::border{0.5F, 0.6F}, {1e-3F, 1.1e-2F}, {1e-30F, nothing}, {1.0F, nothing}}) {
    std::vector<std::uint32_t> places;
    std::vector<std::uint64_t> bits(most.size() * vocabulary::block / 64);
    std::vector<float> values;
    for (std::uint32_t i = 0; i < size; ++i) {
      if (made.weights[i] >= limits.least && !(made.weights[i] >= limits.above))
        places.push_back(i);
      if (made.weights[i] >= limits.least) {
        bits[i / 64] |= std::uint64_t{1} << i % 64;
        values.push_back(logits[i]);
      }
    }
    on_each_target([&] {
      std::vector<std::uint32_t> found(size);
      found.resize(vocabulary::find(made.weights, most, limits, found.data()));
      CHECK(found == places);
      std::vector<std::uint64_t> marked(bits.size(), ~std::uint64_t{0});
      std::vector<float> kept(size + 16);
      kept.resize(vocabulary::gather(made.weights, most, limits.least, logits, marked.data(), kept.data()));
      CHECK(marked == bits);
      CHECK(kept == values);
    });
  }
  // Logits may be below 0.
  std::vector<float> greatest(most.size());
  vocabulary::greatest_of(logits, greatest.data());
  std::vector<std::uint32_t> high;
  for (std::uint32_t i = 0; i < size; ++i)
    if (logits[i] >= -1.5F)
      high.push_back(i);
  on_each_target([&] {
    std::vector<std::uint32_t> found(size);
    found.resize(vocabulary::find(logits, greatest, {-1.5F, nothing}, found.data()));
    CHECK(found == high);
  });
}
