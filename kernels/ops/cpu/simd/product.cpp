// Matrix products: a tile of weights is unpacked in registers once and used for several rows. Compiled once
// for each target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/cpu/simd/product.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include "kernels/ops/cpu/kernels.hpp"
#include "kernels/ops/cpu/simd/dot-inl.hpp"
#include "kernels/ops/cpu/simd/lanes-inl.hpp"

#include <type_traits>

HWY_BEFORE_NAMESPACE();
#if HWY_TARGET == HWY_AVX3_DL
// Highway 1.0.3 asks the processor for this but names another one to the compiler.
#pragma GCC target("avx512vnni")
#endif
namespace godwit::ops::cpu::HWY_NAMESPACE {
namespace {

// Vectors of outputs and rows that stand in registers at the same time: two sums for each pair of them, one
// of integers and one of floats.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
inline constexpr std::size_t vectors = 2;
#else
inline constexpr std::size_t vectors = 1;
#endif
inline constexpr std::size_t row_tile = 4;

/// Four inputs of the 32 outputs of a tile.
inline constexpr std::size_t group_bytes = tile_outputs * 4;

template <std::size_t Rows>
using sums = vfloat[Rows][vectors];

/// Writes sums to `count` <= vectors * lanes outputs, or adds them to what is there.
template <std::size_t Rows>
HWY_INLINE void write(const sums<Rows>& sum, std::size_t count, const product_output& out, float* to) {
  for (std::size_t r = 0; r < Rows; ++r, to += out.stride) {
    if (count == vectors * lanes) {
      for (std::size_t v = 0; v < vectors; ++v) {
        float* const at = to + v * lanes;
        hn::StoreU(out.add ? hn::Add(hn::LoadU(float_tag(), at), sum[r][v]) : sum[r][v], float_tag(), at);
      }
      continue;
    }
    float values[vectors * lanes];
    for (std::size_t v = 0; v < vectors; ++v) {
      hn::StoreU(sum[r][v], float_tag(), values + v * lanes);
    }
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = out.add ? to[i] + values[i] : values[i];
    }
  }
}

/// The coefficients of `lanes` outputs.
template <weight_format Format>
HWY_INLINE vfloat load_coefficients(const std::byte* from, std::size_t which, std::size_t output) {
  if constexpr (traits(Format).coefficient_bytes == 2) {
    return load_halves(reinterpret_cast<const std::uint16_t*>(from) + which * tile_outputs + output);
  } else {
    return hn::LoadU(float_tag(), reinterpret_cast<const float*>(from) + which * tile_outputs + output);
  }
}

/// What a format adds to its weights, times the sum of the activations, negated.
template <weight_format Format>
HWY_INLINE std::int32_t offset_of(const block_info& info, std::size_t half) {
  switch (Format) {
  case weight_format::q4_signed:
    return info.minus_8;
  case weight_format::q8:
  case weight_format::q8_min:
  case weight_format::q8_min_wide:
    return info.minus_128;
  case weight_format::q8_half:
    return half == 0 ? info.minus_128_of_half : info.minus_128 - info.minus_128_of_half;
  default:
    return 0;
  }
}

template <weight_format Format>
inline constexpr bool has_minimum =
  Format == weight_format::q4_min || Format == weight_format::q4_min_wide || Format == weight_format::q8_min
  || Format == weight_format::q8_min_wide;

/// Outputs `[output, output + vectors * lanes)` of one tile for `Rows` rows, quantised weights.
template <weight_format Format, std::size_t Rows>
HWY_INLINE void quantised(const std::byte* tile, const std::byte* coefficients, std::size_t blocks,
  std::size_t output, const std::int8_t* const* x, const block_info* const* info, sums<Rows>& sum) {
  constexpr bool nibbles = traits(Format).bits == 4;
  constexpr std::size_t halves = Format == weight_format::q8_half ? 2 : 1;
  using dot = std::conditional_t<nibbles, nibble_dot, byte_dot>;

  for (std::size_t r = 0; r < Rows; ++r) {
    for (std::size_t v = 0; v < vectors; ++v) {
      sum[r][v] = constant(0.0F);
    }
  }
  const auto* weights = reinterpret_cast<const std::uint8_t*>(tile) + output * 4;
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t half = 0; half < halves; ++half) {
      dot dots[Rows][vectors];
      for (std::size_t r = 0; r < Rows; ++r) {
        for (std::size_t v = 0; v < vectors; ++v) {
          dots[r][v].start(offset_of<Format>(info[r][b], half));
        }
      }
      if constexpr (nibbles) {
#pragma GCC unroll 4
        for (std::size_t g = 0; g < 4; ++g) {
          vint low[vectors];
          vint high[vectors];
          for (std::size_t v = 0; v < vectors; ++v) {
            const vint packed = load_weights(weights + g * group_bytes + v * lanes * 4);
            low[v] = low_nibbles(packed);
            high[v] = high_nibbles(packed);
          }
          for (std::size_t r = 0; r < Rows; ++r) {
            const vint first = four(x[r] + b * block_inputs + g * 4);
            const vint second = four(x[r] + b * block_inputs + 16 + g * 4);
            for (std::size_t v = 0; v < vectors; ++v) {
              dots[r][v].add(low[v], first);
              dots[r][v].add(high[v], second);
            }
          }
        }
      } else {
#pragma GCC unroll 8
        for (std::size_t i = 0; i < 8 / halves; ++i) {
          const std::size_t g = half * 4 + i;
          typename dot::operand w[vectors];
          for (std::size_t v = 0; v < vectors; ++v) {
            w[v] = dot::prepare(load_weights(weights + g * group_bytes + v * lanes * 4));
          }
          for (std::size_t r = 0; r < Rows; ++r) {
            const vint first = four(x[r] + b * block_inputs + g * 4);
            for (std::size_t v = 0; v < vectors; ++v) {
              dots[r][v].add(w[v], first);
            }
          }
        }
      }
      for (std::size_t v = 0; v < vectors; ++v) {
        const vfloat scale = load_coefficients<Format>(coefficients, half, output + v * lanes);
        for (std::size_t r = 0; r < Rows; ++r) {
          const vfloat exact =
            hn::ConvertTo(float_tag(), dots[r][v].finish(offset_of<Format>(info[r][b], half)));
          sum[r][v] = fused(exact, hn::Mul(scale, constant(info[r][b].scale)), sum[r][v]);
        }
      }
    }
    if constexpr (has_minimum<Format>) {
      for (std::size_t v = 0; v < vectors; ++v) {
        const vfloat minimum = load_coefficients<Format>(coefficients, 1, output + v * lanes);
        for (std::size_t r = 0; r < Rows; ++r) {
          sum[r][v] = fused(minimum, constant(info[r][b].scaled_sum), sum[r][v]);
        }
      }
    }
    weights += traits(Format).block_bytes();
    coefficients += traits(Format).coefficient_block_bytes();
  }
}

template <weight_format Format>
HWY_INLINE vfloat load_float_weights(const std::byte* from, std::size_t index) {
  if constexpr (Format == weight_format::f32) {
    return hn::LoadU(float_tag(), reinterpret_cast<const float*>(from) + index);
  } else if constexpr (Format == weight_format::f16) {
    return load_halves(reinterpret_cast<const std::uint16_t*>(from) + index);
  } else {
    return load_bfloats(reinterpret_cast<const std::uint16_t*>(from) + index);
  }
}

/// The same for float weights.
template <weight_format Format, std::size_t Rows>
HWY_INLINE void floating(
  const std::byte* tile, std::size_t inputs, std::size_t output, const float* const* x, sums<Rows>& sum) {
  for (std::size_t r = 0; r < Rows; ++r) {
    for (std::size_t v = 0; v < vectors; ++v) {
      sum[r][v] = constant(0.0F);
    }
  }
  for (std::size_t i = 0; i < inputs; ++i) {
    for (std::size_t v = 0; v < vectors; ++v) {
      const vfloat w = load_float_weights<Format>(tile, i * tile_outputs + output + v * lanes);
      for (std::size_t r = 0; r < Rows; ++r) {
        sum[r][v] = fused(constant(x[r][i]), w, sum[r][v]);
      }
    }
  }
}

template <weight_format Format, std::size_t Rows>
HWY_NOINLINE void tile_rows(const packed_part& weights, std::size_t index, const product_input& in,
  std::size_t row, const product_output& out) {
  const std::byte* const tile = weights.tile(index);
  const std::size_t left = weights.outputs() - index * tile_outputs;
  const std::size_t used = left < tile_outputs ? left : tile_outputs;
  float* const to = out.data + row * out.stride + index * tile_outputs;
  for (std::size_t output = 0; output < used; output += vectors * lanes) {
    sums<Rows> sum;
    if constexpr (traits(Format).quantised) {
      const std::int8_t* x[Rows];
      const block_info* info[Rows];
      for (std::size_t r = 0; r < Rows; ++r) {
        x[r] = in.quants + (row + r) * in.stride;
        info[r] = in.blocks + (row + r) * (in.stride / block_inputs);
      }
      quantised<Format, Rows>(tile, weights.coefficients(index), weights.blocks(), output, x, info, sum);
    } else {
      const float* x[Rows];
      for (std::size_t r = 0; r < Rows; ++r) {
        x[r] = in.floats + (row + r) * in.stride;
      }
      floating<Format, Rows>(tile, weights.inputs(), output, x, sum);
    }
    const std::size_t count = used - output < vectors * lanes ? used - output : vectors * lanes;
    write<Rows>(sum, count, out, to + output);
  }
}

template <weight_format Format>
void product_of(const packed_part& weights, const product_input& in, std::size_t first_row,
  std::size_t last_row, std::size_t first_tile, std::size_t last_tile, const product_output& out) {
  for (std::size_t tile = first_tile; tile < last_tile; ++tile) {
    std::size_t row = first_row;
    for (; row + row_tile <= last_row; row += row_tile) {
      tile_rows<Format, row_tile>(weights, tile, in, row, out);
    }
    if (row + 2 <= last_row) {
      tile_rows<Format, 2>(weights, tile, in, row, out);
      row += 2;
    }
    if (row < last_row) {
      tile_rows<Format, 1>(weights, tile, in, row, out);
    }
  }
}

void product(const packed_part& weights, const product_input& in, std::size_t first_row, std::size_t last_row,
  std::size_t first_tile, std::size_t last_tile, const product_output& out) {
  const auto call = [&](auto function) {
    function(weights, in, first_row, last_row, first_tile, last_tile, out);
  };
  switch (weights.format()) {
  case weight_format::q4_signed:
    return call(&product_of<weight_format::q4_signed>);
  case weight_format::q4_min:
    return call(&product_of<weight_format::q4_min>);
  case weight_format::q4_min_wide:
    return call(&product_of<weight_format::q4_min_wide>);
  case weight_format::q8:
    return call(&product_of<weight_format::q8>);
  case weight_format::q8_min:
    return call(&product_of<weight_format::q8_min>);
  case weight_format::q8_min_wide:
    return call(&product_of<weight_format::q8_min_wide>);
  case weight_format::q8_half:
    return call(&product_of<weight_format::q8_half>);
  case weight_format::f32:
    return call(&product_of<weight_format::f32>);
  case weight_format::f16:
    return call(&product_of<weight_format::f16>);
  case weight_format::bf16:
    return call(&product_of<weight_format::bf16>);
  }
}

} // namespace

void fill_product(kernel_table& table) {
  table.compiled_for = [] { return std::int64_t{HWY_TARGET}; };
  table.product = &product;
}

} // namespace godwit::ops::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
