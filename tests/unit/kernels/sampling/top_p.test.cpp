// Tokens that are found by estimates against those of the definition's sums in their order.
#include "kernels/sampling/top_p.hpp"
#include "tests/unit/kernels/sampling/each_target.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <utility>
#include <vector>

using namespace godwit;

namespace {

/// Logits of one vocabulary, with what `sample` knows of them.
struct distribution {
  distribution(std::vector<float> from, float temperature) : logits(std::move(from)) {
    scratch.block_greatest.resize(vocabulary::blocks_of(logits.size()));
    vocabulary::greatest_of(logits, scratch.block_greatest.data());
    how = {*std::ranges::max_element(scratch.block_greatest), temperature};
  }

  std::optional<token_id> quickly(const sampling_settings& settings, double random, bool exact) {
    const auto whole =
      exact ? detail::compute_weights(logits, how, scratch) : detail::estimate_weights(logits, how, scratch);
    return detail::draw_likely(logits, how, whole, settings, random, scratch);
  }
  token_id in_order(const sampling_settings& settings, double random) {
    detail::compute_weights(logits, how, scratch);
    return detail::draw_likely_in_order(logits, how, settings, random, scratch);
  }

  std::vector<float> logits;
  vocabulary::weighing how;
  sampler_scratch scratch;
};

} // namespace

TEST_CASE(
  "tokens of the likeliest are the same by estimates as by sums in their order, on every instruction set") {
  std::mt19937 random(21);
  std::normal_distribution<float> normal(0, 1);
  std::size_t drawn = 0;
  std::size_t unclear = 0;
  for (const std::size_t size : {1U, 15U, 300U, 5001U, 20'000U})
    for (const float spread : {0.0F, 0.1F, 1.0F, 3.0F, 12.0F})
      for (const float temperature : {1.0F, 0.6F}) {
        std::vector<float> logits(size);
        std::ranges::generate(logits, [&] { return std::round(normal(random) * 512) / 512 * spread; });
        if (size > 20)
          logits[7] = std::nanf("");
        distribution all(std::move(logits), temperature);
        for (const float top_p : {0.001F, 0.5F, 0.9F, 0.9999F})
          for (const float min_p : {0.0F, 0.03F}) {
            sampling_settings settings;
            settings.top_p = top_p;
            settings.min_p = min_p;
            const double u = static_cast<double>(random()) * 0x1p-32;
            const auto expected = all.in_order(settings, u);
            on_each_target([&] {
              for (const bool exact : {false, true}) {
                const auto token = all.quickly(settings, u, exact);
                ++drawn;
                unclear += token ? 0U : 1U;
                CHECK(token.value_or(expected) == expected);
              }
            });
          }
      }
  // All weights alike reach one half exactly in the middle, and the like.
  CHECK(unclear * 10 < drawn);
}

TEST_CASE("nothing is drawn by estimates where an error of a sum would decide") {
  // Four equal weights: half of them reach one half exactly, and any error would take one more or less.
  distribution even(std::vector<float>(4, 2.0F), 1.0F);
  sampling_settings settings;
  settings.top_p = 0.5F;
  CHECK_FALSE(even.quickly(settings, 0.3, false));
  CHECK(even.in_order(settings, 0.3) == 0);
  // The first of two ends where the random number falls.
  settings.top_p = 0.6F;
  CHECK_FALSE(even.quickly(settings, 1.0 / 3, false));
  CHECK(even.quickly(settings, 0.34, false) == token_id{1});
}
