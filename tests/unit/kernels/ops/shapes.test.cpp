// Every op on shapes at the edges: nothing, one, tails, misaligned, huge. What is right follows from the op's
// formula in double; what the targets give is compared to the bit, and nothing around the result changes.
#include "kernels/ops/cpu/kernels.hpp"
#include "kernels/quant/dequantize.hpp"
#include "tests/support/quantize.hpp"
#include "tests/unit/kernels/ops/targets.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

using namespace godwit;
using namespace godwit::ops::cpu;
using gguf::tensor_type;

namespace {

constexpr double epsilon = std::numeric_limits<float>::epsilon();
constexpr float untouched = 12345.0F;
constexpr std::size_t margin = 32;

/// Numbers that start so many floats behind a 64-byte boundary, between two margins.
struct placed {
  std::vector<float> memory;
  float* data;
  std::size_t count;

  placed(const std::vector<float>& numbers, std::size_t offset)
    : memory(numbers.size() + 2 * margin + 16, untouched), count{numbers.size()} {
    auto at = reinterpret_cast<std::uintptr_t>(memory.data());
    at = (at + 63) / 64 * 64 + margin / 2 * sizeof(float) * 2 + offset * sizeof(float);
    data = reinterpret_cast<float*>(at);
    std::ranges::copy(numbers, data);
  }
  bool clean() const {
    return std::all_of(memory.data(), static_cast<const float*>(data), [](float x) { return x == untouched; })
           && std::all_of(static_cast<const float*>(data) + count, memory.data() + memory.size(),
             [](float x) { return x == untouched; });
  }
  std::vector<float> result() const { return {data, data + count}; }
};

/// A row op: what it writes for an input, an input and a partner.
struct row_op {
  const char* name;
  std::function<void(const kernel_table&, const float* a, const float* b, std::size_t count, float* y)> run;
  std::function<double(double a, double b)> exact; ///< of one element
  double error;                                    ///< in epsilons of the result
};

const row_op row_ops[] = {
  {"gate",
    [](
      const kernel_table& t, const float* a, const float* b, std::size_t n, float* y) { t.gate(a, b, n, y); },
    [](double a, double b) { return a / (1 + std::exp(-a)) * b; }, 8},
  {"gate_gelu",
    [](const kernel_table& t, const float* a, const float* b, std::size_t n, float* y) {
      t.gate_gelu(a, b, n, y);
    },
    [](double a, double b) {
      return a / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (a + 0.044715 * a * a * a))) * b;
    },
    40},
  {"cap",
    [](const kernel_table& t, const float* a, const float*, std::size_t n, float* y) {
      std::copy_n(a, n, y);
      t.cap(y, n, 30);
    },
    [](double a, double) { return 30 * std::tanh(a / 30); }, 400},
};

/// Turns as they are for two neighbours.
void rotate_exactly(std::vector<double>& x, const std::vector<float>& turns, bool halves) {
  const std::size_t count = x.size();
  for (std::size_t i = 0; i < count / 2; ++i) {
    double& first = halves ? x[i] : x[2 * i];
    double& second = halves ? x[count / 2 + i] : x[2 * i + 1];
    const double cosine = turns[2 * i];
    const double sine = turns[2 * i + 1];
    const double turned = first * cosine - second * sine;
    second = second * cosine + first * sine;
    first = turned;
  }
}

packed_part pack_all(
  tensor_type type, std::span<const std::byte> bytes, std::size_t outputs, std::size_t inputs) {
  const gguf::tensor tensor{.name = "w", .type = type, .shape = {inputs, outputs}, .data = bytes};
  packed_part part{packed_part::format_for(type), outputs, inputs};
  for (std::size_t tile = 0; tile < part.tiles(); ++tile) {
    part.pack(tensor, tile);
  }
  return part;
}

std::vector<float> multiply(
  const kernel_table& target, const packed_part& part, const std::vector<float>& rows, std::size_t count) {
  const std::size_t inputs = part.inputs();
  std::vector<std::int8_t> quants(rows.size());
  std::vector<block_info> blocks(rows.size() / block_inputs);
  target.quantise(rows.data(), rows.size(), quants.data(), blocks.data());
  std::vector<float> y(count * part.outputs(), untouched);
  aligned_buffer scratch{product_scratch_bytes(inputs)};
  target.product(part, {quants.data(), blocks.data(), rows.data(), inputs}, 0, count, 0, part.tiles(),
    {y.data(), part.outputs()}, scratch.data());
  return y;
}

} // namespace

TEST_CASE("row ops of every length and alignment are their formulas, and write nothing else") {
  for (const auto& op : row_ops) {
    for (const std::size_t count : {0U, 1U, 2U, 7U, 15U, 16U, 17U, 31U, 33U, 100U, 4099U}) {
      const auto a = random_floats(count, 21, 8);
      const auto b = random_floats(count, 22, 3);
      std::vector<float> first;
      for (const auto& target : targets_here()) {
        for (const std::size_t offset : {0U, 1U, 3U}) {
          INFO(op.name << " of " << count << " on " << target.name << ", offset " << offset);
          const placed from{a, offset};
          const placed with{b, offset + 1};
          placed to{std::vector<float>(count), offset + 2};
          op.run(target, from.data, with.data, count, to.data);
          const auto y = to.result();
          if (first.empty()) {
            first = y;
            bool near = true;
            for (std::size_t i = 0; i < count; ++i) {
              const double exact = op.exact(a[i], b[i]);
              near = near && std::abs(y[i] - exact) <= op.error * epsilon * (std::abs(exact) + 1);
            }
            CHECK(near);
          }
          REQUIRE(y == first);
          REQUIRE(to.clean());
          REQUIRE(from.clean());
        }
      }
    }
  }
}

TEST_CASE("rotations of every even length turn all pairs and nothing else") {
  for (const bool halves : {false, true}) {
    for (const std::size_t count : {0U, 2U, 6U, 16U, 30U, 32U, 34U, 64U, 96U, 258U}) {
      const auto x = random_floats(count, 31, 4);
      std::vector<float> turns(count);
      for (std::size_t i = 0; i < count; i += 2) {
        turns[i] = std::cos(static_cast<float>(i) * 0.37F);
        turns[i + 1] = std::sin(static_cast<float>(i) * 0.37F);
      }
      std::vector<double> exact(x.begin(), x.end());
      rotate_exactly(exact, turns, halves);
      std::vector<float> first;
      for (const auto& target : targets_here()) {
        for (const std::size_t offset : {0U, 1U}) {
          INFO(
            count << (halves ? " halves" : " neighbours") << " on " << target.name << ", offset " << offset);
          placed in_place{x, offset};
          (halves ? target.rotate_halves : target.rotate)(in_place.data, turns.data(), count);
          const auto y = in_place.result();
          first = first.empty() ? y : first;
          REQUIRE(y == first);
          REQUIRE(in_place.clean());
          bool near = true;
          for (std::size_t i = 0; i < count; ++i) {
            near = near && std::abs(y[i] - exact[i]) <= 4 * epsilon * 8;
          }
          REQUIRE(near);
        }
      }
    }
  }
}

TEST_CASE("a norm and a quantisation of a huge row are those of double sums") {
  constexpr std::size_t count = std::size_t{1} << 18;
  const auto x = random_floats(count, 41, 3);
  const std::vector<float> ones(count, 1.0F);
  double squares = 0;
  for (const float v : x) {
    squares += static_cast<double>(v) * v;
  }
  const double inverse = 1 / std::sqrt(squares / count + 1e-5);
  std::vector<float> first;
  for (const auto& target : targets_here()) {
    INFO(target.name);
    std::vector<float> y(count);
    target.norm(x.data(), ones.data(), count, 1e-5F, y.data());
    first = first.empty() ? y : first;
    REQUIRE(y == first);
    double worst = 0;
    for (std::size_t i = 0; i < count; ++i) {
      worst = std::max(worst, std::abs(y[i] - x[i] * inverse));
    }
    // A lane adds 2^14 squares one after the other.
    CHECK(worst < 3 * (count / 16) * epsilon);
    target.quantise(x.data(), 0, nullptr, nullptr);
  }
}

TEST_CASE("products without rows or tiles write nothing") {
  const auto bytes = random_blocks(tensor_type::q4_1, 33 * 64, 5);
  const auto part = pack_all(tensor_type::q4_1, bytes, 33, 64);
  for (const auto& target : targets_here()) {
    aligned_buffer scratch{product_scratch_bytes(64)};
    std::vector<float> y(33, untouched);
    const std::vector<std::int8_t> quants(64);
    const std::vector<block_info> blocks(2);
    const std::vector<float> floats(64);
    const product_input in{quants.data(), blocks.data(), floats.data(), 64};
    target.product(part, in, 0, 0, 0, 2, {y.data(), 33}, scratch.data());
    target.product(part, in, 0, 1, 1, 1, {y.data(), 33}, scratch.data());
    CHECK(std::ranges::all_of(y, [](float v) { return v == untouched; }));
  }
}

TEST_CASE("a product of thousands of inputs and outputs has the error of its sums, for every type") {
  constexpr std::size_t inputs = 4096;
  for (const auto type : {tensor_type::f32, tensor_type::f16, tensor_type::bf16, tensor_type::q4_0,
         tensor_type::q4_1, tensor_type::q5_0, tensor_type::q5_1, tensor_type::q8_0, tensor_type::q4_k,
         tensor_type::q5_k, tensor_type::q6_k}) {
    constexpr std::size_t outputs = 65;
    const auto bytes = random_blocks(type, outputs * inputs, 51);
    const auto part = pack_all(type, bytes, outputs, inputs);
    std::vector<double> weights(outputs * inputs);
    dequantize_row(type, bytes, weights.data(), weights.size());
    // One row for the products of few, and enough for those of many.
    const auto rows = random_floats(many_rows * inputs, 52, 2);
    std::vector<float> first;
    for (const auto& target : targets_here()) {
      if ((target.name == "scalar" || target.name == "sse4") && type != tensor_type::q4_1) {
        continue; // slow, and the smaller shapes have it
      }
      INFO(gguf::to_string(type) << " on " << target.name);
      const auto y = multiply(target, part, rows, many_rows);
      first = first.empty() ? y : first;
      REQUIRE(y == first);
      const auto alone = multiply(target, part, {rows.end() - inputs, rows.end()}, 1);
      REQUIRE(std::equal(alone.begin(), alone.end(), y.end() - outputs));
    }
    std::vector<std::int8_t> quants(inputs);
    std::vector<block_info> blocks(inputs / block_inputs);
    targets_here().front().quantise(rows.data(), inputs, quants.data(), blocks.data());
    double worst = 0;
    for (std::size_t o = 0; o < outputs; ++o) {
      double sum = 0;
      double norm = 0;
      for (std::size_t i = 0; i < inputs; ++i) {
        const double x = traits(part.format()).quantised
                           ? static_cast<double>(blocks[i / block_inputs].scale) * quants[i]
                           : rows[i];
        sum += x * weights[o * inputs + i];
        norm += std::abs(x * weights[o * inputs + i]);
      }
      worst = std::max(worst, std::abs(first[o] - sum) / (inputs * epsilon * norm));
    }
    CHECK(worst < 1);
  }
}

TEST_CASE("blocks whose scales are zero give nothing but their minimum") {
  constexpr std::size_t inputs = 256;
  constexpr std::size_t outputs = 33;
  for (const auto type : {tensor_type::q4_0, tensor_type::q4_1, tensor_type::q5_0, tensor_type::q5_1,
         tensor_type::q8_0, tensor_type::q4_k, tensor_type::q5_k, tensor_type::q6_k}) {
    auto bytes = random_blocks(type, outputs * inputs, 61);
    const std::size_t block = gguf::block_bytes(type);
    for (std::size_t at = 0; at < bytes.size(); at += block) {
      // Both half precision numbers at the start, or the scale at the end of a Q6_K block.
      const std::size_t offset = type == tensor_type::q6_k ? block - 2 : 0;
      const bool two = type == tensor_type::q4_1 || type == tensor_type::q5_1 || type == tensor_type::q4_k
                       || type == tensor_type::q5_k;
      std::memset(bytes.data() + at + offset, 0, two ? 4 : 2);
    }
    const auto part = pack_all(type, bytes, outputs, inputs);
    for (const auto& target : targets_here()) {
      INFO(gguf::to_string(type) << " on " << target.name);
      for (const std::size_t rows : {std::size_t{25}, many_rows}) {
        const auto y = multiply(target, part, random_floats(rows * inputs, 62, 2), rows);
        CHECK(std::ranges::all_of(y, [](float v) { return v == 0; }));
      }
    }
  }
}
