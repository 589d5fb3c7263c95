#include "kernels/quant/dequantize.hpp"

#include "kernels/gguf/file.hpp"
#include "kernels/quant/blocks.hpp"
#include "kernels/quant/half.hpp"
#include "tests/support/quant_vectors.hpp"
#include "tests/support/quantize.hpp"

#include <catch2/catch.hpp>

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

using namespace godwit;
using gguf::tensor_type;

namespace {

constexpr auto all_types = {tensor_type::f32, tensor_type::f16, tensor_type::bf16, tensor_type::q4_0,
  tensor_type::q4_1, tensor_type::q5_0, tensor_type::q5_1, tensor_type::q8_0, tensor_type::q4_k,
  tensor_type::q5_k, tensor_type::q6_k};

template <class Block>
std::vector<float> floats_of(tensor_type type, const Block& block) {
  std::vector<float> out(gguf::block_elements(type));
  dequantize_row(type, std::as_bytes(std::span(&block, 1)), out.data(), out.size());
  return out;
}

} // namespace

TEST_CASE("blocks have the sizes of the file format") {
  CHECK(sizeof(block_q4_0) == gguf::block_bytes(tensor_type::q4_0));
  CHECK(sizeof(block_q4_1) == gguf::block_bytes(tensor_type::q4_1));
  CHECK(sizeof(block_q5_0) == gguf::block_bytes(tensor_type::q5_0));
  CHECK(sizeof(block_q5_1) == gguf::block_bytes(tensor_type::q5_1));
  CHECK(sizeof(block_q8_0) == gguf::block_bytes(tensor_type::q8_0));
  CHECK(sizeof(block_q4_k) == gguf::block_bytes(tensor_type::q4_k));
  CHECK(sizeof(block_q5_k) == gguf::block_bytes(tensor_type::q5_k));
  CHECK(sizeof(block_q6_k) == gguf::block_bytes(tensor_type::q6_k));
}

TEST_CASE("blocks become the floats that ggml's own package makes of them, bit for bit") {
  const auto vectors = quant_vectors("dequantize");
  REQUIRE(vectors.size() == 10);
  for (const auto& each : vectors) {
    INFO(gguf::to_string(each.type));
    std::vector<float> out(each.floats.size());
    dequantize_row(each.type, each.blocks, out.data(), out.size());
    for (std::size_t i = 0; i < out.size(); ++i)
      REQUIRE(std::bit_cast<std::uint32_t>(out[i]) == std::bit_cast<std::uint32_t>(each.floats[i]));
  }
}

TEST_CASE("a block written by hand reads as its formula says") {
  block_q4_1 small{.d = float_to_half(0.5F), .m = float_to_half(-2.0F), .qs = {}};
  small.qs[3] = 0x71; // element 3 has 1, element 19 has 7
  const auto numbers = floats_of(tensor_type::q4_1, small);
  CHECK(numbers[3] == -1.5F);
  CHECK(numbers[19] == 1.5F);
  CHECK(numbers[0] == -2.0F);

  block_q6_k large{};
  large.d = float_to_half(0.25F);
  large.scales[10] = -3;  // elements 160 to 175
  large.ql[64 + 37] = 9;  // element 165 = 128 + 32 + 5: second row of 32, low half
  large.qh[32 + 5] = 0x4; // its high bits are 1
  CHECK(floats_of(tensor_type::q6_k, large)[165] == 0.25F * -3 * (9 + 16 - 32));
}

TEST_CASE("doubles are the floats before their one rounding") {
  for (const auto type : all_types) {
    INFO(gguf::to_string(type));
    const auto bytes = random_blocks(type, 512, 3);
    std::vector<float> single(512);
    std::vector<double> wide(512);
    dequantize_row(type, bytes, single.data(), 512);
    dequantize_row(type, bytes, wide.data(), 512);
    bool any = false;
    for (std::size_t i = 0; i < 512; ++i) {
      REQUIRE(static_cast<float>(wide[i]) == single[i]);
      any = any || single[i] != 0;
    }
    CHECK(any);
  }
}

TEST_CASE("rows may lie at odd addresses") {
  for (const auto type : all_types) {
    const auto bytes = random_blocks(type, 256, 9);
    std::vector<std::byte> shifted(bytes.size() + 1);
    std::memcpy(shifted.data() + 1, bytes.data(), bytes.size());
    std::vector<float> expected(256), out(256);
    dequantize_row(type, bytes, expected.data(), 256);
    dequantize_row(type, std::span(shifted).subspan(1), out.data(), 256);
    CHECK(out == expected);
  }
}
