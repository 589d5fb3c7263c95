#include "kernels/ops/cpu/kernels.hpp"
#include "kernels/ops/reference/page_codec.hpp"
#include "kernels/quant/half.hpp"
#include "tests/unit/kernels/ops/targets.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

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

TEST_CASE("blocks that are quantised together get what each gets alone, wherever they lie") {
  // Some of them are all zero, too small, or hold what is no number; each may be anywhere among four.
  constexpr std::size_t most = 11;
  constexpr std::size_t stride = 96;
  auto x = random_floats(most * stride, 17, 9);
  for (std::size_t unusual = 0; unusual < 5; ++unusual) {
    for (std::size_t at = 0; at < most; ++at) {
      auto with = x;
      float* const block = with.data() + at * stride;
      const float values[] = {0, 1e-35F, std::numeric_limits<float>::quiet_NaN(),
        -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::max()};
      if (unusual < 2) {
        std::fill_n(block, 32, values[unusual]);
      } else {
        block[at] = values[unusual];
      }
      for (std::size_t count = 0; count <= most; ++count) {
        for (const auto& target : targets_here()) {
          std::vector<std::int8_t> together(most * 64, 77);
          std::vector<block_info> infos(most * 3);
          target.quantise_blocks({with.data(), stride}, {together.data(), 64, infos.data(), 3}, count);
          bool same = true;
          for (std::size_t b = 0; b < most; ++b) {
            std::vector<std::int8_t> alone(32, 77);
            block_info info;
            if (b < count) {
              targets_here().back().quantise(with.data() + b * stride, 32, alone.data(), &info);
            }
            same = same
                   && std::equal(
                     alone.begin(), alone.end(), together.begin() + static_cast<std::ptrdiff_t>(b * 64))
                   && std::memcmp(&info, &infos[b * 3], sizeof info) == 0;
            same = same && together[b * 64 + 32] == 77 && infos[b * 3 + 1].minus_8 == 0;
          }
          INFO(
            target.name << ", " << count << " blocks, the unusual one at " << at << " of kind " << unusual);
          REQUIRE(same);
        }
      }
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
    target.halves.store(k.data(), v.data(), dim, reinterpret_cast<std::byte*>(page.data()), 5);
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

TEST_CASE("stored positions can be upper halves of singles, rounded to the nearest, ties to even") {
  constexpr std::size_t dim = 48;
  auto k = random_floats(dim, 7, 10);
  auto v = random_floats(dim, 8, 10);
  k[0] = 3.4e38F; // would round to infinity
  v[1] = -3.4e38F;
  k[2] = 1e-40F;      // subnormal
  k[3] = 1.00390625F; // halfway between 1 and the next one, whose last bit is odd
  k[4] = 1.01171875F; // halfway between an odd one and the next
  // Its neighbours by their distance, in double.
  const auto nearest = [](float x) {
    const float limited = std::clamp(x, -0x1.FEp127F, 0x1.FEp127F);
    std::uint32_t bits;
    std::memcpy(&bits, &limited, sizeof bits);
    const std::uint32_t low = bits >> 16U;
    const auto value = [](std::uint32_t half) {
      const std::uint32_t word = half << 16U;
      float number;
      std::memcpy(&number, &word, sizeof number);
      return static_cast<double>(number);
    };
    const double down = std::abs(value(low) - limited);
    const double up = low % 0x8000 == 0x7F7F ? 1e300 : std::abs(value(low + 1) - limited);
    return static_cast<kv_element>(down < up || (down == up && low % 2 == 0) ? low : low + 1);
  };
  CHECK(nearest(k[3]) == 0x3F80);
  CHECK(nearest(k[4]) == 0x3F82);
  for (const auto& target : targets_here()) {
    INFO(target.name);
    std::vector<kv_element> page(2 * page_tokens * dim, 0x1234);
    target.bfloats.store(k.data(), v.data(), dim, reinterpret_cast<std::byte*>(page.data()), 5);
    std::size_t touched = 0;
    for (std::size_t d = 0; d < dim; ++d) {
      CHECK(page[d * page_tokens + 5] == nearest(k[d]));
      CHECK(page[(page_tokens + 5) * dim + d] == nearest(v[d]));
    }
    for (const auto element : page) {
      touched += element != 0x1234;
    }
    CHECK(touched <= 2 * dim);
  }
}

namespace {

/// A page of integers and scales by its bytes.
struct byte_page {
  static constexpr std::size_t dim = 48;
  static constexpr std::size_t slot = 5;
  std::vector<kv_element> bytes = std::vector<kv_element>(page_tokens * dim + 2 * page_tokens, 0x1234);

  std::byte* data() { return reinterpret_cast<std::byte*>(bytes.data()); }
  const std::int8_t* integers() const { return reinterpret_cast<const std::int8_t*>(bytes.data()); }
  int key(std::size_t d) const { return integers()[d * page_tokens + slot]; }
  int value(std::size_t d) const { return integers()[(page_tokens + slot) * dim + d]; }
  kv_scale key_scale() const { return bytes[page_tokens * dim + slot]; }
  kv_scale value_scale() const { return bytes[page_tokens * dim + page_tokens + slot]; }
};

} // namespace

TEST_CASE("stored positions can be integers with a scale of their own, off by half a step at most") {
  constexpr auto dim = byte_page::dim;
  const float sizes[] = {1, 10, 3e-3F, 2e-5F, 4e6F};
  for (const float size : sizes) {
    auto k = random_floats(dim, 7, size);
    auto v = random_floats(dim, 8, size / 3);
    k[3] = 0;
    byte_page first;
    bool first_target = true;
    for (const auto& target : targets_here()) {
      INFO(target.name << ", numbers up to " << size);
      byte_page page;
      target.bytes.store(k.data(), v.data(), dim, page.data(), byte_page::slot);
      first = first_target ? page : first;
      first_target = false;
      CHECK(page.bytes == first.bytes);
      const auto check = [&](const std::vector<float>& from, kv_scale stored, auto&& element) {
        float greatest = 0;
        for (const float x : from) {
          greatest = std::max(greatest, std::abs(x));
        }
        CHECK(stored == float_to_half(greatest / 127));
        const double step = half_to_float(stored);
        for (std::size_t d = 0; d < dim; ++d) {
          REQUIRE(std::abs(element(d)) <= 127);
          // A scale below the least normal half is so coarse that the greatest numbers are cut.
          if (std::abs(from[d]) < 127.4 * step) {
            REQUIRE(std::abs(element(d) * step - from[d]) <= 0.5 * step * (1 + 1e-4));
          } else {
            REQUIRE(std::abs(element(d)) == 127);
          }
        }
      };
      check(k, page.key_scale(), [&](std::size_t d) { return page.key(d); });
      check(v, page.value_scale(), [&](std::size_t d) { return page.value(d); });
      std::size_t touched = 0;
      for (std::size_t i = 0; i < page.bytes.size() * 2; ++i) {
        touched += page.integers()[i] != byte_page{}.integers()[i];
      }
      CHECK(touched <= 2 * dim + 4);
    }
  }
}

TEST_CASE("every target writes the pages that the reference does, of every type") {
  constexpr std::size_t dim = 64;
  std::vector<std::vector<float>> rows;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    rows.push_back(random_floats(2 * dim, seed, std::ldexp(1.0F, static_cast<int>(seed) - 20)));
  }
  rows.emplace_back(2 * dim, 0.0F);
  rows.emplace_back(2 * dim, 3e38F);
  rows.emplace_back(2 * dim, 1e-45F);
  rows.push_back(rows[20]);
  rows.back()[7] = 1e9F; // beyond what the scale can say
  for (const auto type : {kv_type::f16, kv_type::bf16, kv_type::int8}) {
    const kv_shape shape{1, 1, dim, type};
    for (const auto& row : rows) {
      const std::vector<double> exact(row.begin(), row.end());
      std::vector<kv_element> expected(shape.page_bytes() / 2);
      ops::reference::store_position(
        shape, exact.data(), exact.data() + dim, reinterpret_cast<std::byte*>(expected.data()), 9);
      for (const auto& target : targets_here()) {
        INFO(target.name << ", " << to_string(type) << ", a number is " << row[0]);
        std::vector<kv_element> page(shape.page_bytes() / 2);
        target.pages(type).store(
          row.data(), row.data() + dim, dim, reinterpret_cast<std::byte*>(page.data()), 9);
        CHECK(page == expected);
      }
    }
  }
}

TEST_CASE("what is not finite makes the scale of its own position no number, and that of no other") {
  constexpr auto dim = byte_page::dim;
  const auto v = random_floats(dim, 8);
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
         std::numeric_limits<float>::quiet_NaN()}) {
    auto k = random_floats(dim, 7);
    k[31] = bad;
    for (const auto& target : targets_here()) {
      byte_page page;
      target.bytes.store(k.data(), v.data(), dim, page.data(), byte_page::slot);
      CHECK(std::isnan(half_to_float(page.key_scale())));
      CHECK(half_to_float(page.value_scale()) > 0);
    }
  }
}
