#include "kernels/ops/cpu/kernels.hpp"
#include "kernels/quant/half.hpp"
#include "tests/unit/kernels/ops/targets.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace godwit;
using namespace godwit::ops::cpu;

namespace {

constexpr double epsilon = std::numeric_limits<float>::epsilon();

} // namespace

TEST_CASE("quantised blocks are the nearest multiples of a 127th of the greatest magnitude") {
  for (const auto& target : targets_here()) {
    const auto x = random_floats(1024, 1, 5);
    std::vector<std::int8_t> quants(x.size());
    std::vector<block_info> blocks(x.size() / 32);
    target.quantise(x.data(), x.size(), quants.data(), blocks.data());
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      float greatest = 0;
      int sum = 0;
      int half = 0;
      for (std::size_t i = 0; i < 32; ++i) {
        greatest = std::max(greatest, std::abs(x[b * 32 + i]));
        sum += quants[b * 32 + i];
        half += i < 16 ? quants[b * 32 + i] : 0;
      }
      CHECK(blocks[b].scale == greatest / 127);
      CHECK(blocks[b].scaled_sum == blocks[b].scale * static_cast<float>(sum));
      CHECK(blocks[b].minus_8 == -8 * sum);
      CHECK(blocks[b].minus_128 == -128 * sum);
      CHECK(blocks[b].minus_128_of_half == -128 * half);
      for (std::size_t i = 0; i < 32; ++i) {
        const double exact = static_cast<double>(x[b * 32 + i]) / blocks[b].scale;
        CHECK(std::abs(exact - quants[b * 32 + i]) <= 0.5 + 127 * 2 * epsilon);
      }
    }
  }
}

TEST_CASE("zeros and numbers too small to divide by are quantised to zero") {
  for (const auto& target : targets_here()) {
    for (const float tiny : {0.0F, 1e-40F, -0x1p-101F}) {
      const std::vector<float> x(32, tiny);
      std::vector<std::int8_t> quants(32, 1);
      block_info info;
      target.quantise(x.data(), 32, quants.data(), &info);
      CHECK(info.scale == 0);
      CHECK(std::ranges::all_of(quants, [](int q) { return q == 0; }));
    }
  }
}

TEST_CASE("a norm divides by the root of the mean square, for widths with and without a tail") {
  for (const std::size_t count : {1U, 15U, 16U, 64U, 100U, 576U}) {
    const auto x = random_floats(count, 3, 2);
    const auto weight = random_floats(count, 4);
    double squares = 0;
    for (const float v : x) {
      squares += static_cast<double>(v) * v;
    }
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(count) + 1e-5);
    std::vector<float> first;
    for (const auto& target : targets_here()) {
      std::vector<float> y(count);
      target.norm(x.data(), weight.data(), count, 1e-5F, y.data());
      if (first.empty()) {
        first = y;
        for (std::size_t i = 0; i < count; ++i) {
          CHECK(std::abs(y[i] - x[i] * inverse * weight[i])
                <= 20 * epsilon * std::abs(x[i] * inverse * weight[i]));
        }
      }
      INFO(target.name);
      CHECK(y == first);
    }
  }
}

TEST_CASE("a gate is the sigmoid-weighted product, to both ends of the range") {
  auto a = random_floats(1001, 5, 20);
  a[0] = 1e30F;
  a[1] = -1e30F;
  a[2] = 0;
  a[3] = -87.5F;
  a[4] = 87.5F;
  a[5] = std::numeric_limits<float>::infinity();
  const auto b = random_floats(a.size(), 6, 3);
  std::vector<float> first;
  for (const auto& target : targets_here()) {
    std::vector<float> y(a.size());
    target.gate(a.data(), b.data(), a.size(), y.data());
    if (first.empty()) {
      first = y;
      for (std::size_t i = 6; i < a.size(); ++i) {
        const double exact = a[i] / (1 + std::exp(-static_cast<double>(a[i]))) * b[i];
        CHECK(std::abs(y[i] - exact) <= 8 * epsilon * std::abs(exact));
      }
      CHECK(y[0] == 1e30F * b[0]);
      CHECK(std::abs(y[1]) < 1e-7);
      CHECK(y[2] == 0);
    }
    INFO(target.name);
    CHECK(y == first);
  }
}

TEST_CASE("rotation turns neighbouring pairs") {
  for (const auto& target : targets_here()) {
    std::vector<float> x{1, 0, 0, 2, 3, 4};
    const std::vector<float> turns{0, 1, -1, 0}; // a quarter, a half
    target.rotate(x.data(), turns.data(), 4);
    CHECK(x == std::vector<float>{0, 1, 0, -2, 3, 4});
  }
}

TEST_CASE("rotation turns elements of one half with those of the other") {
  for (const auto& target : targets_here()) {
    std::vector<float> x{1, 0, 0, 2, 3, 4};
    const std::vector<float> turns{0, 1, -1, 0}; // a quarter, a half
    target.rotate_halves(x.data(), turns.data(), 4);
    CHECK(x == std::vector<float>{0, 0, 1, -2, 3, 4});
  }
}

TEST_CASE("the gate of GELU is half a hyperbolic tangent, to both ends of the range") {
  auto a = random_floats(1001, 9, 12);
  a[0] = 1e30F;
  a[1] = -1e30F;
  a[2] = 0;
  a[3] = std::numeric_limits<float>::infinity();
  const auto b = random_floats(a.size(), 10, 3);
  std::vector<float> first;
  for (const auto& target : targets_here()) {
    std::vector<float> y(a.size());
    target.gate_gelu(a.data(), b.data(), a.size(), y.data());
    if (first.empty()) {
      first = y;
      for (std::size_t i = 4; i < a.size(); ++i) {
        const double x = a[i];
        const double inner = std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x);
        // By exp, where 1 + tanh has lost all digits; the error of a large exponent goes into the result.
        const double exact = x / (1 + std::exp(-2 * inner)) * b[i];
        CHECK(std::abs(y[i] - exact) <= (8 + 4 * std::abs(inner)) * epsilon * std::abs(exact) + 1e-35);
        CHECK(y[i] == Approx(x / 2 * (1 + std::tanh(inner)) * b[i]).epsilon(1e-5).margin(1e-5));
      }
      CHECK(y[0] == 1e30F * b[0]);
      CHECK(std::abs(y[1]) < 1e-7);
      CHECK(y[2] == 0);
    }
    INFO(target.name);
    CHECK(y == first);
  }
}

TEST_CASE("a cap bends numbers towards it, and what is no number stays none") {
  auto x = random_floats(1001, 11, 200);
  x[0] = std::numeric_limits<float>::infinity();
  x[1] = -std::numeric_limits<float>::infinity();
  x[2] = std::numeric_limits<float>::quiet_NaN();
  x[3] = 0;
  std::vector<float> first;
  for (const auto& target : targets_here()) {
    auto y = x;
    target.cap(y.data(), y.size(), 30);
    CHECK(y[0] == 30);
    CHECK(y[1] == -30);
    CHECK(std::isnan(y[2]));
    CHECK(y[3] == 0);
    y[2] = 0;
    if (first.empty()) {
      first = y;
      for (std::size_t i = 4; i < x.size(); ++i) {
        CHECK(std::abs(y[i] - 30 * std::tanh(static_cast<double>(x[i]) / 30)) <= 30 * 8 * epsilon);
      }
    }
    INFO(target.name);
    CHECK(y == first);
  }
}

TEST_CASE("stored positions are halves, keys by element and values by position") {
  constexpr std::size_t dim = 48;
  auto k = random_floats(dim, 7, 10);
  auto v = random_floats(dim, 8, 10);
  k[0] = 1e6F;
  v[1] = -1e6F;
  k[2] = 1e-7F; // subnormal
  for (const auto& target : targets_here()) {
    INFO(target.name);
    std::vector<kv_element> page(2 * page_tokens * dim, 0x1234);
    target.store(k.data(), v.data(), dim, page.data(), 5);
    std::size_t touched = 0;
    for (std::size_t d = 0; d < dim; ++d) {
      const auto limited = [](float x) { return float_to_half(std::clamp(x, -65504.0F, 65504.0F)); };
      CHECK(page[d * page_tokens + 5] == limited(k[d]));
      CHECK(page[(page_tokens + 5) * dim + d] == limited(v[d]));
    }
    for (const auto element : page) {
      touched += element != 0x1234;
    }
    CHECK(touched <= 2 * dim);
  }
}
