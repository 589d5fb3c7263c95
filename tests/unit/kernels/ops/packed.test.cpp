#include "kernels/ops/cpu/packed.hpp"
#include "kernels/quant/dequantize.hpp"
#include "tests/support/quantize.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

using namespace godwit;
using namespace godwit::ops::cpu;
using gguf::tensor_type;

TEST_CASE("a packed matrix of any type gives its weights back, rounded once") {
  for (const auto type : {tensor_type::f32, tensor_type::f16, tensor_type::bf16, tensor_type::q4_0,
         tensor_type::q4_1, tensor_type::q5_0, tensor_type::q5_1, tensor_type::q8_0, tensor_type::q4_k,
         tensor_type::q5_k, tensor_type::q6_k}) {
    // Sizes below, at and above a tile.
    for (const std::size_t outputs : {1U, 31U, 32U, 33U, 70U}) {
      for (const std::size_t inputs : {256U, 768U}) {
        INFO(gguf::to_string(type) << " [" << outputs << ", " << inputs << "]");
        const auto bytes = random_blocks(type, outputs * inputs, 7, 1.0F);
        const gguf::tensor tensor{.name = "w", .type = type, .shape = {inputs, outputs}, .data = bytes};
        packed_part part{packed_part::format_for(type), outputs, inputs};
        for (std::size_t tile = 0; tile < part.tiles(); ++tile) {
          part.pack(tensor, tile);
        }
        std::vector<double> exact(outputs * inputs);
        dequantize_row(type, bytes, exact.data(), exact.size());
        std::vector<float> row(inputs);
        bool equal = true;
        for (std::size_t output = 0; output < outputs; ++output) {
          part.unpack(output, row);
          equal = equal
                  && std::equal(row.begin(), row.end(),
                    exact.begin() + static_cast<std::ptrdiff_t>(output * inputs),
                    [](float have, double want) { return have == static_cast<float>(want); });
        }
        CHECK(equal);
      }
    }
  }
}
