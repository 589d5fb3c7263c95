#include "kernels/ops/cpu/kernels.hpp"
#include "kernels/quant/dequantize.hpp"
#include "kernels/quant/half.hpp"
#include "tests/support/quantize.hpp"
#include "tests/unit/kernels/ops/targets.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace godwit;
using namespace godwit::ops::cpu;
using gguf::tensor_type;

namespace {

constexpr tensor_type types[] = {tensor_type::f32, tensor_type::f16, tensor_type::bf16, tensor_type::q4_0,
  tensor_type::q4_1, tensor_type::q5_0, tensor_type::q5_1, tensor_type::q8_0, tensor_type::q4_k,
  tensor_type::q5_k, tensor_type::q6_k};

/// A packed random matrix and the same weights as doubles.
struct made_matrix {
  packed_part part;
  std::vector<double> weights;
};

made_matrix make_matrix(tensor_type type, std::size_t outputs, std::size_t inputs) {
  const auto bytes = random_blocks(type, outputs * inputs, 11);
  const gguf::tensor tensor{.name = "w", .type = type, .shape = {inputs, outputs}, .data = bytes};
  made_matrix made{packed_part{packed_part::format_for(type), outputs, inputs}, {}};
  for (std::size_t tile = 0; tile < made.part.tiles(); ++tile) {
    made.part.pack(tensor, tile);
  }
  made.weights.resize(outputs * inputs);
  dequantize_row(type, bytes, made.weights.data(), made.weights.size());
  return made;
}

/// Rows in both forms.
struct made_rows {
  std::size_t stride = 0;
  std::vector<float> floats;
  std::vector<std::int8_t> quants;
  std::vector<block_info> blocks;

  made_rows(const kernel_table& target, std::size_t rows, std::size_t inputs, std::uint32_t seed)
    : stride{inputs}, floats{random_floats(rows * inputs, seed, 3)}, quants(rows * inputs),
      blocks(rows * inputs / block_inputs) {
    target.quantise(floats.data(), floats.size(), quants.data(), blocks.data());
  }
  product_input input() const { return {quants.data(), blocks.data(), floats.data(), stride}; }
  /// What a product with quantised or float weights sees.
  double value(std::size_t at, bool quantised) const {
    return quantised ? static_cast<double>(blocks[at / block_inputs].scale) * quants[at] : floats[at];
  }
};

/// Calls a target's product with scratch memory of its own.
void multiply(const kernel_table& target, const packed_part& weights, const product_input& in,
  std::size_t first_row, std::size_t last_row, std::size_t first_tile, std::size_t last_tile,
  const product_output& out) {
  aligned_buffer scratch{product_scratch_bytes(weights.inputs())};
  target.product(weights, in, first_row, last_row, first_tile, last_tile, out, scratch.data());
}

/// A copy of elements that ends where a page begins which may not be touched.
template <class T>
class guarded {
 public:
  explicit guarded(const std::vector<T>& from) {
    const std::size_t bytes = from.size() * sizeof(T);
    const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    size_ = (bytes + page - 1) / page * page + page;
    start_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(start_ != MAP_FAILED);
    auto* const end = static_cast<std::byte*>(start_) + size_ - page;
    REQUIRE(::mprotect(end, page, PROT_NONE) == 0);
    data_ = reinterpret_cast<T*>(end - bytes);
    std::memcpy(data_, from.data(), bytes);
  }
  ~guarded() { ::munmap(start_, size_); }
  guarded(const guarded&) = delete;
  guarded& operator=(const guarded&) = delete;
  T* data() const { return data_; }

 private:
  void* start_ = nullptr;
  std::size_t size_ = 0;
  T* data_ = nullptr;
};

} // namespace

TEST_CASE("products of every type and target agree with double sums, and with each other to the bit") {
  const auto targets = targets_here();
  for (const auto type : types) {
    for (const std::size_t outputs : {1U, 31U, 32U, 33U, 70U}) {
      for (const std::size_t inputs : {256U, 768U}) {
        const auto matrix = make_matrix(type, outputs, inputs);
        const bool quantised = traits(matrix.part.format()).quantised;
        for (const std::size_t rows : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4},
               std::size_t{5}, std::size_t{6}, std::size_t{8}, std::size_t{16}, many_rows, many_rows + 3}) {
          if (rows >= many_rows && (outputs != 33 || inputs != 256)) {
            continue; // the sums in double would take a while
          }
          INFO(gguf::to_string(type) << " [" << outputs << ", " << inputs << "], " << rows << " rows");
          std::vector<float> first;
          for (const auto& target : targets) {
            const made_rows x{target, rows, inputs, 5};
            std::vector<float> y(rows * outputs, std::numeric_limits<float>::quiet_NaN());
            multiply(
              target, matrix.part, x.input(), 0, rows, 0, matrix.part.tiles(), {y.data(), outputs, false});
            if (first.empty()) {
              first = y;
              double worst = 0; // in units of the tolerance
              for (std::size_t r = 0; r < rows; ++r) {
                for (std::size_t o = 0; o < outputs; ++o) {
                  double sum = 0;
                  double norm = 0;
                  for (std::size_t i = 0; i < inputs; ++i) {
                    const double term = x.value(r * inputs + i, quantised) * matrix.weights[o * inputs + i];
                    sum += term;
                    norm += std::abs(term);
                  }
                  // Each of the roundings, one or two for a block and three for a coefficient, is at most
                  // half an epsilon of a partial sum.
                  const double steps =
                    quantised ? 2.0 * static_cast<double>(inputs) / 32 + 3 : static_cast<double>(inputs);
                  const double tolerance = steps * std::numeric_limits<float>::epsilon() * norm;
                  worst = std::max(worst, std::abs(y[r * outputs + o] - sum) / tolerance);
                }
              }
              CHECK(worst < 1);
            }
            INFO(target.name);
            CHECK(y == first);
          }
        }
      }
    }
  }
}

TEST_CASE("a Q4_1 product is the stated sum: two fused steps for each block, ascending") {
  constexpr std::size_t outputs = 40;
  constexpr std::size_t inputs = 96;
  const auto bytes = random_blocks(tensor_type::q4_1, outputs * inputs, 3);
  const gguf::tensor tensor{
    .name = "w", .type = tensor_type::q4_1, .shape = {inputs, outputs}, .data = bytes};
  packed_part part{packed_part::format_for(tensor_type::q4_1), outputs, inputs};
  part.pack(tensor, 0);
  part.pack(tensor, 1);
  for (const auto& target : targets_here()) {
    const made_rows x{target, 1, inputs, 9};
    std::vector<float> y(outputs);
    multiply(target, part, x.input(), 0, 1, 0, 2, {y.data(), outputs, false});
    for (std::size_t o = 0; o < outputs; ++o) {
      float sum = 0;
      for (std::size_t b = 0; b < inputs / 32; ++b) {
        block_q4_1 block;
        std::memcpy(&block, bytes.data() + (o * (inputs / 32) + b) * sizeof block, sizeof block);
        int dot = 0;
        int total = 0;
        for (std::size_t i = 0; i < 32; ++i) {
          const int q = i < 16 ? block.qs[i] & 15 : block.qs[i - 16] >> 4;
          dot += q * x.quants[b * 32 + i];
          total += x.quants[b * 32 + i];
        }
        const float scale = x.blocks[b].scale;
        sum = std::fma(static_cast<float>(dot), half_to_float(block.d) * scale, sum);
        sum = std::fma(half_to_float(block.m), scale * static_cast<float>(total), sum);
      }
      REQUIRE(y[o] == sum);
    }
  }
}

TEST_CASE("the greatest quants do not saturate") {
  constexpr std::size_t inputs = 64;
  for (const auto& target : targets_here()) {
    INFO(target.name);
    std::vector<float> row(inputs, 127); // quants of 127
    std::vector<std::int8_t> quants(inputs);
    std::vector<block_info> blocks(2);
    target.quantise(row.data(), inputs, quants.data(), blocks.data());
    CHECK(quants[0] == 127);
    const auto product = [&](tensor_type type, std::span<const std::byte> bytes) {
      const gguf::tensor tensor{.name = "w", .type = type, .shape = {inputs, 1}, .data = bytes};
      packed_part part{packed_part::format_for(type), 1, inputs};
      part.pack(tensor, 0);
      float y = 0;
      multiply(target, part, {quants.data(), blocks.data(), row.data(), inputs}, 0, 1, 0, 1, {&y, 1, false});
      return y;
    };
    for (const int quant : {-128, -127, 127}) {
      std::vector<block_q8_0> weights(2);
      for (auto& block : weights) {
        block.d = float_to_half(1);
        std::ranges::fill(block.qs, static_cast<std::int8_t>(quant));
      }
      CHECK(product(tensor_type::q8_0, std::as_bytes(std::span{weights}))
            == static_cast<float>(64 * 127 * quant));
    }
    std::vector<block_q4_0> weights(2);
    for (auto& block : weights) {
      block.d = float_to_half(1);
      std::ranges::fill(block.qs, std::uint8_t{0xFF});
    }
    CHECK(product(tensor_type::q4_0, std::as_bytes(std::span{weights})) == 64 * 127 * 7);
  }
}

TEST_CASE("a product adds to what is there, in the rows and tiles that it is given") {
  const auto matrix = make_matrix(tensor_type::q8_0, 70, 64);
  for (const auto& target : targets_here()) {
    const made_rows x{target, 6, 64, 21};
    std::vector<float> all(6 * 80, 0.0F);
    multiply(target, matrix.part, x.input(), 0, 6, 0, 3, {all.data(), 80, false});
    std::vector<float> some(6 * 80, 1.0F);
    multiply(target, matrix.part, x.input(), 1, 5, 1, 2, {some.data(), 80, true});
    for (std::size_t r = 0; r < 6; ++r) {
      for (std::size_t o = 0; o < 80; ++o) {
        const bool inside = r >= 1 && r < 5 && o >= 32 && o < 64;
        REQUIRE(some[r * 80 + o] == (inside ? 1.0F + all[r * 80 + o] : 1.0F));
        REQUIRE((o < 70 || all[r * 80 + o] == 0));
      }
    }
  }
}

TEST_CASE("a product touches nothing behind its operands") {
  // The ends of inputs and outputs stand before a page that may not be touched: a wrong step ends the
  // process.
  constexpr std::size_t inputs = 64;
  constexpr std::size_t outputs = 33;
  for (const auto type : {tensor_type::q4_1, tensor_type::q8_0, tensor_type::f32}) {
    const auto matrix = make_matrix(type, outputs, inputs);
    for (const auto& target : targets_here()) {
      for (const std::size_t rows : {1U, 2U, 5U, 27U}) {
        const made_rows x{target, rows, inputs, 3};
        const guarded<std::int8_t> quants{x.quants};
        const guarded<block_info> blocks{x.blocks};
        const guarded<float> floats{x.floats};
        const guarded<float> y{std::vector<float>(rows * outputs)};
        multiply(target, matrix.part, {quants.data(), blocks.data(), floats.data(), inputs}, 0, rows, 0,
          matrix.part.tiles(), {y.data(), outputs, false});
        std::vector<float> expected(rows * outputs);
        multiply(
          target, matrix.part, x.input(), 0, rows, 0, matrix.part.tiles(), {expected.data(), outputs, false});
        CHECK(std::equal(expected.begin(), expected.end(), y.data()));
      }
    }
  }
}

TEST_CASE("a product that asks for what is read later gives the same bits, and gets through the list") {
  // Nothing is there: it is only asked for.
  const std::byte* const runs[] = {reinterpret_cast<const std::byte*>(std::uintptr_t{1} << 40),
    reinterpret_cast<const std::byte*>(std::uintptr_t{1} << 41)};
  for (const auto type : types) {
    const auto matrix = make_matrix(type, 70, 768);
    for (const auto& target : targets_here()) {
      for (const std::size_t rows : {std::size_t{1}, std::size_t{7}, std::size_t{20}, many_rows}) {
        if (rows == many_rows && (target.name == "scalar" || target.name == "sse4")) {
          continue; // as for few rows there
        }
        const made_rows x{target, rows, 768, 8};
        std::vector<float> expected(rows * 70);
        multiply(
          target, matrix.part, x.input(), 0, rows, 0, matrix.part.tiles(), {expected.data(), 70, false});
        reading_list list{runs, 2, 1000, 3};
        auto in = x.input();
        in.later = &list;
        std::vector<float> y(rows * 70);
        multiply(target, matrix.part, in, 0, rows, 0, matrix.part.tiles(), {y.data(), 70, false});
        INFO(gguf::to_string(type) << " on " << target.name << ", " << rows << " rows");
        CHECK(y == expected);
        CHECK(list.run <= 2);
        // Where some rows follow others there is time for it.
        const bool quantised = traits(matrix.part.format()).quantised;
        CHECK((quantised || list.run == 0));
        CHECK((!quantised || rows < 7 || rows >= many_rows || list.run == 2));
      }
    }
  }
}

TEST_CASE("a scale that is no number spoils the output that it belongs to and no other, for every type") {
  constexpr std::size_t outputs = 40;
  constexpr std::size_t inputs = 512;
  constexpr std::size_t bad = 3;
  for (const auto type : types) {
    const auto clean = random_blocks(type, outputs * inputs, 13);
    auto spoilt = clean;
    // The first number of the output's second block, or all of it for Q6_K, whose scales come last.
    const std::size_t row_bytes = clean.size() / outputs;
    const std::size_t block = gguf::block_bytes(type);
    std::byte* const at = spoilt.data() + bad * row_bytes + block;
    const bool half = type != tensor_type::f32 && type != tensor_type::bf16;
    const std::uint16_t infinite = half ? 0x7C00 : 0x7F80;
    for (const bool is_nan : {false, true}) {
      const std::uint16_t bits = is_nan ? 0x7FFF : infinite;
      std::memcpy(type == tensor_type::f32    ? at + 2
                  : type == tensor_type::q6_k ? at + block - 2
                                              : at,
        &bits, sizeof bits);
      const auto make = [&](const std::vector<std::byte>& bytes) {
        const gguf::tensor tensor{.name = "w", .type = type, .shape = {inputs, outputs}, .data = bytes};
        packed_part part{packed_part::format_for(type), outputs, inputs};
        for (std::size_t tile = 0; tile < part.tiles(); ++tile) {
          part.pack(tensor, tile);
        }
        return part;
      };
      const auto good = make(clean);
      const auto part = make(spoilt);
      for (const auto& target : targets_here()) {
        for (const std::size_t rows : {std::size_t{1}, std::size_t{5}, many_rows}) {
          const made_rows x{target, rows, inputs, 14};
          std::vector<float> expected(rows * outputs);
          std::vector<float> y(rows * outputs);
          multiply(target, good, x.input(), 0, rows, 0, 2, {expected.data(), outputs, false});
          multiply(target, part, x.input(), 0, rows, 0, 2, {y.data(), outputs, false});
          bool others = true;
          bool own = true;
          for (std::size_t i = 0; i < y.size(); ++i) {
            if (i % outputs == bad) {
              own = own && !std::isfinite(y[i]);
            } else {
              others = others && y[i] == expected[i];
            }
          }
          INFO(gguf::to_string(type) << " on " << target.name << ", " << rows << " rows, NaN " << is_nan);
          CHECK(own);
          CHECK(others);
        }
      }
    }
  }
}

TEST_CASE("weights and activations that are no numbers spoil results, not memory") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const auto& target : targets_here()) {
    INFO(target.name);
    // All bits set: a NaN scale.
    const std::vector<std::byte> bytes(sizeof(block_q4_k) * 40, std::byte{0xFF});
    const gguf::tensor tensor{.name = "w", .type = tensor_type::q4_k, .shape = {256, 40}, .data = bytes};
    packed_part part{packed_part::format_for(tensor_type::q4_k), 40, 256};
    part.pack(tensor, 0);
    part.pack(tensor, 1);
    const made_rows x{target, 1, 256, 2};
    std::vector<float> y(40);
    multiply(target, part, x.input(), 0, 1, 0, 2, {y.data(), 40, false});
    CHECK(std::ranges::all_of(y, [](float v) { return std::isnan(v); }));

    for (const float bad : {nan, -nan, infinity, -infinity}) {
      auto row = random_floats(64, 4);
      row[40] = bad;
      std::vector<std::int8_t> quants(64);
      std::vector<block_info> blocks(2);
      target.quantise(row.data(), 64, quants.data(), blocks.data());
      CHECK(std::isfinite(blocks[0].scale));
      CHECK(std::isnan(blocks[1].scale));
      CHECK(std::ranges::all_of(std::span{quants}.subspan(32), [](int q) { return q == 0; }));
    }
  }
}
