#include "kernels/ops/cpu/attention_plan.hpp"
#include "kernels/ops/cpu/kernels.hpp"
#include "kernels/quant/half.hpp"
#include "tests/unit/kernels/ops/targets.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace godwit;
using namespace godwit::ops::cpu;

namespace {

/// Pages of one head in a shuffled order; what no position was written to is NaN, where the type has such.
struct made_pages {
  std::size_t dim;
  kv_shape shape;
  std::vector<kv_element> memory;
  std::vector<page_id> pages;
  std::vector<float> keys;
  std::vector<float> values;

  made_pages(std::size_t head_dim, std::size_t positions, kv_type type = kv_type::f16)
    : dim{head_dim}, shape{1, 1, static_cast<std::uint32_t>(head_dim), type} {
    const std::size_t count = (positions + page_tokens - 1) / page_tokens;
    // No number: of halves and of upper halves of singles, and as a scale.
    memory.assign(
      (count + 1) * shape.page_bytes() / sizeof(kv_element), type == kv_type::bf16 ? 0x7FC0 : 0x7E00);
    keys = random_floats(positions * dim, 1, 2);
    values = random_floats(positions * dim, 2, 2);
    for (std::size_t i = 0; i < count; ++i) {
      pages.push_back(static_cast<page_id>(count - i));
    }
    std::mt19937 dice{3};
    for (std::size_t p = 0; p < positions; ++p) {
      // Scales of their own for each position, far enough apart for a wrong one to be seen.
      const kv_scale scales[] = {float_to_half(0.001F * static_cast<float>(dice() % 30 + 1)),
        float_to_half(0.001F * static_cast<float>(dice() % 30 + 1))};
      for (std::size_t d = 0; d < dim; ++d) {
        keys[p * dim + d] = put(p, d * page_tokens + p % page_tokens, keys[p * dim + d], scales[0]);
        values[p * dim + d] =
          put(p, (page_tokens + p % page_tokens) * dim + d, values[p * dim + d], scales[1]);
      }
      if (type == kv_type::int8) {
        auto* const after = page_of(p) + 2 * page_tokens * dim;
        std::memcpy(after + 2 * (p % page_tokens), scales, 2);
        std::memcpy(after + 2 * (page_tokens + p % page_tokens), scales + 1, 2);
      }
    }
  }
  std::byte* page_of(std::size_t position) {
    return reinterpret_cast<std::byte*>(memory.data()) + pages[position / page_tokens] * shape.page_bytes();
  }
  /// Writes an element near to `number`. @returns what stands there then
  float put(std::size_t position, std::size_t element, float number, kv_scale scale) {
    std::byte* const page = page_of(position);
    if (shape.type == kv_type::int8) {
      const float step = half_to_float(scale);
      const auto q = static_cast<std::int8_t>(std::clamp(std::lround(number / step), -127L, 127L));
      std::memcpy(page + element, &q, 1);
      return static_cast<float>(q) * step;
    }
    const bool bfloat = shape.type == kv_type::bf16;
    const std::uint16_t half = bfloat ? float_to_bf16(number) : float_to_half(number);
    std::memcpy(page + 2 * element, &half, 2);
    return bfloat ? bf16_to_float(half) : half_to_float(half);
  }
  /// Makes a position no number.
  void spoil(std::size_t p) {
    std::byte* const page = page_of(p);
    const std::uint16_t none = memory[0];
    for (std::size_t d = 0; d < dim && shape.type != kv_type::int8; ++d) {
      std::memcpy(page + 2 * (d * page_tokens + p % page_tokens), &none, 2);
      std::memcpy(page + 2 * ((page_tokens + p % page_tokens) * dim + d), &none, 2);
    }
    if (shape.type == kv_type::int8) {
      std::memcpy(page + 2 * page_tokens * dim + 2 * (p % page_tokens), &none, 2);
      std::memcpy(page + 2 * page_tokens * dim + 2 * (page_tokens + p % page_tokens), &none, 2);
    }
  }
  kv_pages view() const {
    return {reinterpret_cast<const std::byte*>(memory.data()), shape.page_bytes(), pages, dim};
  }

  /// Attention by its definition.
  std::vector<double> exact(const attention_query& query, double cap = 0) const {
    const std::size_t visible = query.visible;
    std::vector<double> scores(visible, -std::numeric_limits<double>::infinity());
    for (std::size_t p = query.first; p < visible; ++p) {
      scores[p] = 0;
      for (std::size_t d = 0; d < dim; ++d) {
        scores[p] += static_cast<double>(query.vector[d]) * keys[p * dim + d];
      }
      scores[p] /= std::sqrt(static_cast<double>(dim));
      scores[p] = cap == 0 ? scores[p] : cap * std::tanh(scores[p] / cap);
    }
    const double maximum = *std::ranges::max_element(scores);
    double total = 0;
    std::vector<double> sum(dim);
    for (std::size_t p = query.first; p < visible; ++p) {
      const double weight = std::exp(scores[p] - maximum);
      total += weight;
      for (std::size_t d = 0; d < dim; ++d) {
        sum[d] += weight * values[p * dim + d];
      }
    }
    for (auto& v : sum) {
      v /= total;
    }
    return sum;
  }
};

/// All segments of some queries, merged.
std::vector<float> attend(const kernel_table& target, const made_pages& pages,
  const std::vector<attention_query>& queries, float cap = 0) {
  const std::size_t size = partial_size(pages.dim);
  std::size_t most = 0;
  for (const auto& query : queries) {
    most = std::max(most, query.visible);
  }
  std::vector<float> scratch(attention_scratch(queries.size(), pages.dim));
  std::vector<float> later(queries.size() * size);
  std::vector<float> result(queries.size() * size);
  const float scale = 1 / std::sqrt(static_cast<float>(pages.dim));
  for (std::size_t segment = 0; segment * segment_tokens < most; ++segment) {
    auto& to = segment == 0 ? result : later;
    target.pages(pages.shape.type)
      .attend(pages.view(), queries, segment, {scale, cap}, scratch.data(), to.data());
    for (std::size_t q = 0; q < queries.size() && segment != 0; ++q) {
      target.merge(later.data() + q * size, pages.dim, result.data() + q * size);
    }
  }
  std::vector<float> y(queries.size() * pages.dim);
  for (std::size_t q = 0; q < queries.size(); ++q) {
    target.normalise(result.data() + q * size, pages.dim, y.data() + q * pages.dim);
  }
  return y;
}

} // namespace

TEST_CASE("attention agrees with its definition, on every target to the bit, alone and beside others") {
  const auto type = GENERATE(kv_type::f16, kv_type::bf16, kv_type::int8);
  for (const std::size_t dim : {16U, 48U, 64U, 128U}) {
    const made_pages pages{dim, 300, type};
    const auto vectors = random_floats(11 * dim, 3, 2);
    std::vector<attention_query> queries;
    for (const std::size_t visible : {1U, 16U, 17U, 127U, 128U, 129U, 130U, 131U, 256U, 299U, 300U}) {
      queries.push_back({vectors.data() + queries.size() * dim, visible});
    }
    std::vector<float> first;
    for (const auto& target : targets_here()) {
      INFO(target.name << ", heads of " << dim << ", " << to_string(type));
      const auto together = attend(target, pages, queries);
      if (first.empty()) {
        first = together;
        double worst = 0;
        for (std::size_t q = 0; q < queries.size(); ++q) {
          const auto exact = pages.exact(queries[q]);
          for (std::size_t d = 0; d < dim; ++d) {
            worst = std::max(worst, std::abs(together[q * dim + d] - exact[d]));
          }
        }
        // Scores of magnitude s carry an error of s epsilons into the exponent; values are below 2, or with
        // scales up to 0.03 below 4.
        const int largest = type == kv_type::int8 ? 4 : 2;
        CHECK(worst < largest * 4 * std::sqrt(static_cast<double>(dim)) * 8
                        * std::numeric_limits<float>::epsilon());
      }
      CHECK(together == first);
      for (std::size_t q = 0; q < queries.size(); ++q) {
        const auto alone = attend(target, pages, {queries[q]});
        CHECK(
          std::equal(alone.begin(), alone.end(), together.begin() + static_cast<std::ptrdiff_t>(q * dim)));
      }
    }
  }
}

TEST_CASE("scores far apart leave the greatest alone, and infinite ones spoil only their own query") {
  constexpr std::size_t dim = 16;
  const made_pages pages{dim, 40};
  std::vector<float> large(dim);
  for (std::size_t d = 0; d < dim; ++d) {
    large[d] = pages.keys[7 * dim + d] * 1e4F;
  }
  const std::vector<float> infinite(dim, std::numeric_limits<float>::infinity());
  for (const auto& target : targets_here()) {
    const auto y = attend(target, pages, {{large.data(), 40}, {infinite.data(), 40}});
    const auto exact = pages.exact({large.data(), 40});
    for (std::size_t d = 0; d < dim; ++d) {
      CHECK(y[d] == Approx(exact[d]).epsilon(1e-4));
      CHECK(std::isnan(y[dim + d]));
    }
  }
}

TEST_CASE("a window hides what stands before it, and scores are capped, on every target to the bit") {
  constexpr std::size_t dim = 32;
  const auto type = GENERATE(kv_type::f16, kv_type::bf16, kv_type::int8);
  made_pages pages{dim, 300, type};
  const auto vectors = random_floats(10 * dim, 4, 3);
  std::vector<attention_query> queries;
  // Windows of one position, within a page, over a page's and a segment's end, and none; four queries a tile.
  for (const auto& [first, visible] : {std::pair{299U, 300U}, {290U, 300U}, {120U, 130U}, {128U, 129U},
         {127U, 300U}, {0U, 300U}, {1U, 20U}, {16U, 32U}, {200U, 210U}, {43U, 299U}}) {
    queries.push_back({vectors.data() + queries.size() * dim, visible, first});
  }
  for (const float cap : {0.0F, 2.0F}) {
    std::vector<float> first;
    for (const auto& target : targets_here()) {
      INFO(target.name << ", cap " << cap << ", " << to_string(type));
      const auto together = attend(target, pages, queries, cap);
      first = first.empty() ? together : first;
      CHECK(together == first);
      for (std::size_t q = 0; q < queries.size(); ++q) {
        const auto exact = pages.exact(queries[q], cap);
        for (std::size_t d = 0; d < dim; ++d) {
          REQUIRE(together[q * dim + d] == Approx(exact[d]).margin(1e-4));
        }
        const auto alone = attend(target, pages, {queries[q]}, cap);
        CHECK(
          std::equal(alone.begin(), alone.end(), together.begin() + static_cast<std::ptrdiff_t>(q * dim)));
      }
    }
  }
}

TEST_CASE("what a window hides may be no number") {
  constexpr std::size_t dim = 16;
  const auto type = GENERATE(kv_type::f16, kv_type::bf16, kv_type::int8);
  made_pages pages{dim, 40, type};
  const auto clean = attend(targets_here().front(), pages, {{pages.keys.data(), 40, 20}});
  for (std::size_t p = 0; p < 20; ++p) {
    pages.spoil(p);
  }
  for (const auto& target : targets_here()) {
    // Beside a query that sees it.
    const auto y = attend(target, pages, {{pages.keys.data(), 40, 0}, {pages.keys.data(), 40, 20}});
    CHECK_FALSE(y[0] == clean[0]);
    CHECK(std::equal(clean.begin(), clean.end(), y.begin() + dim));
  }
}

TEST_CASE("a run of segments is merged as one after the other would be, with empty ones anywhere") {
  for (const std::size_t dim : {16U, 64U, 80U}) {
    const std::size_t size = partial_size(dim);
    for (const std::size_t count : {1U, 2U, 3U, 15U, 16U, 17U, 18U, 33U, 64U}) {
      auto partials = random_floats(count * size, static_cast<std::uint32_t>(count), 20);
      const auto empties = random_floats(count, 99);
      for (std::size_t i = 0; i < count; ++i) {
        float* const own = partials.data() + i * size;
        own[1] = std::abs(own[1]) + 1;
        // None, some, or all of them.
        if (empties[i] < (count % 3 == 0 ? -0.3F : count % 3 == 1 ? -2.0F : 2.0F)) {
          own[0] = -std::numeric_limits<float>::infinity();
          std::fill_n(own + 1, size - 1, 0.0F);
        }
      }
      std::vector<float> first;
      for (const auto& target : targets_here()) {
        std::vector<float> expected(partials.begin(), partials.begin() + static_cast<std::ptrdiff_t>(size));
        for (std::size_t i = 1; i < count; ++i) {
          target.merge(partials.data() + i * size, dim, expected.data());
        }
        std::vector<float> merged(size, 5);
        target.merge_run(partials.data(), count, dim, merged.data());
        first = first.empty() ? merged : first;
        INFO(target.name << ", " << count << " segments of " << dim);
        CHECK(merged == expected);
        CHECK(merged == first);
      }
    }
  }
}
