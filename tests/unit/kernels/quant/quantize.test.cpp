// The quantizers that other tests make weights with.
#include "tests/support/quantize.hpp"

#include "kernels/quant/dequantize.hpp"
#include "tests/support/quant_vectors.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using gguf::tensor_type;

TEST_CASE("the test quantizers make the bytes that ggml's own package makes") {
  const auto vectors = quant_vectors("quantize");
  REQUIRE(vectors.size() == 7);
  for (const auto& each : vectors) {
    INFO(gguf::to_string(each.type));
    CHECK(quantize(each.type, each.floats) == each.blocks);
  }
}

TEST_CASE("random blocks of every type are weights of the size that was asked for") {
  for (const auto type : {tensor_type::f32, tensor_type::f16, tensor_type::bf16, tensor_type::q4_0,
         tensor_type::q4_1, tensor_type::q5_0, tensor_type::q5_1, tensor_type::q8_0, tensor_type::q4_k,
         tensor_type::q5_k, tensor_type::q6_k}) {
    INFO(gguf::to_string(type));
    const auto bytes = random_blocks(type, 4096, 1, 0.1F);
    CHECK(bytes == random_blocks(type, 4096, 1, 0.1F));
    CHECK(bytes != random_blocks(type, 4096, 2, 0.1F));
    std::vector<float> out(4096);
    dequantize_row(type, bytes, out.data(), out.size());
    double squares = 0;
    for (const auto x : out) {
      REQUIRE(std::abs(x) < 0.6F);
      squares += static_cast<double>(x) * static_cast<double>(x);
    }
    const auto norm = std::sqrt(squares / 4096);
    CHECK(norm > 0.03);
    CHECK(norm < 0.2);
  }
}
