// Matrix products for many rows: a tile is unpacked once, to bytes and floats in memory that stays in the
// near caches, and used for all rows, so that the loop is little more than dot products. Compiled once for
// each target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/cpu/simd/product_many.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include "kernels/ops/cpu/kernels.hpp"
#include "kernels/ops/cpu/simd/dot-inl.hpp"
#include "kernels/ops/cpu/simd/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
#if HWY_TARGET == HWY_AVX3_DL
// Highway 1.0.3 asks the processor for this but names another one to the compiler.
#pragma GCC target("avx512vnni")
#endif
namespace godwit::ops::cpu::HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_SSE4

/// Rows in registers: as many as the sums leave room for, since each weight is loaded once for them.
inline constexpr std::size_t row_tile = 6;
static_assert(row_tile <= many_rows);

/// An unpacked block is `[8 groups][32 outputs][4 inputs]` bytes and then its coefficients as floats.
inline constexpr std::size_t byte_block = tile_outputs * block_inputs;
constexpr std::size_t unpacked_stride(weight_format format) {
  return byte_block + traits(format).coefficients * tile_outputs * sizeof(float);
}

/// Unpacks the weights and coefficients of a tile.
template <weight_format Format>
HWY_INLINE void unpack(const std::byte* tile, std::size_t blocks, std::byte* to) {
  const hn::Repartition<std::uint8_t, int_tag> bytes;
  for (std::size_t b = 0; b < blocks; ++b) {
    const auto* const from = reinterpret_cast<const std::uint8_t*>(tile);
    auto* const weights = reinterpret_cast<std::uint8_t*>(to);
#pragma GCC unroll 8
    for (std::size_t g = 0; g < 8; ++g) {
      for (std::size_t i = 0; i < group_bytes; i += lanes * 4) {
        const vint group = load_group<Format>(from + i, g);
        hn::StoreU(hn::BitCast(bytes, group), bytes, weights + g * group_bytes + i);
      }
    }
    auto* const floats = reinterpret_cast<float*>(to + byte_block);
    const std::byte* const coefficients = tile + traits(Format).block_bytes();
    for (std::size_t i = 0; i < traits(Format).coefficients * tile_outputs; i += lanes) {
      hn::StoreU(load_coefficients<Format>(coefficients, 0, i), float_tag(), floats + i);
    }
    tile += traits(Format).block_stride();
    to += unpacked_stride(Format);
  }
}

/// Outputs `[output, output + strip)` of an unpacked tile for `Rows` rows.
template <weight_format Format, std::size_t Rows>
HWY_INLINE void multiply(const std::byte* tile, std::size_t blocks, std::size_t output,
  const std::int8_t* const* x, const block_info* const* info, sums<Rows, vectors>& sum) {
  constexpr std::size_t halves = scale_parts<Format>;
  clear<Rows, vectors>(sum);
  for (std::size_t b = 0; b < blocks; ++b, tile += unpacked_stride(Format)) {
    const auto* const weights = reinterpret_cast<const std::uint8_t*>(tile) + output * 4;
    const auto* const floats = reinterpret_cast<const float*>(tile + byte_block) + output;
    for (std::size_t half = 0; half < halves; ++half) {
      block_dots<Format, Rows, vectors> dots;
      start<Format, Rows, vectors>(dots, info, b, half);
#pragma GCC unroll 8
      for (std::size_t i = 0; i < 8 / halves; ++i) {
        const std::size_t g = half * 4 + i;
        typename dot_of<Format>::operand w[vectors];
        for (std::size_t v = 0; v < vectors; ++v) {
          w[v] = dot_of<Format>::prepare(load_weights(weights + g * group_bytes + v * lanes * 4));
        }
        add_group<Format, Rows, vectors>(dots, w, x, b * block_inputs + g * 4);
      }
      vfloat scales[vectors];
      for (std::size_t v = 0; v < vectors; ++v) {
        scales[v] = hn::LoadU(float_tag(), floats + half * tile_outputs + v * lanes);
      }
      add_scaled<Format, Rows, vectors>(dots, info, b, half, scales, sum);
    }
    if constexpr (has_minimum<Format>) {
      vfloat minima[vectors];
      for (std::size_t v = 0; v < vectors; ++v) {
        minima[v] = hn::LoadU(float_tag(), floats + tile_outputs + v * lanes);
      }
      add_minima<Rows, vectors>(info, b, minima, sum);
    }
  }
}

template <weight_format Format, std::size_t Rows>
HWY_NOINLINE void tile_rows(const std::byte* tile, std::size_t blocks, std::size_t used,
  const product_input& in, std::size_t row, const product_output& out, float* to) {
  const std::int8_t* x[Rows];
  const block_info* info[Rows];
  for (std::size_t r = 0; r < Rows; ++r) {
    x[r] = in.quants + (row + r) * in.stride;
    info[r] = in.blocks + (row + r) * (in.stride / block_inputs);
  }
  for (std::size_t output = 0; output < used; output += strip) {
    sums<Rows, vectors> sum;
    multiply<Format, Rows>(tile, blocks, output, x, info, sum);
    write<Rows, vectors>(
      sum, used - output < strip ? used - output : strip, out, to + row * out.stride + output);
  }
}

/// @param Unpacked a format of the same meaning that says how to use what is unpacked
template <weight_format Format, weight_format Unpacked>
void product_of(const packed_part& weights, const product_input& in, std::size_t first_row,
  std::size_t last_row, std::size_t first_tile, std::size_t last_tile, const product_output& out,
  std::byte* scratch) {
  static_assert(unpacked_stride(Format) == unpacked_stride(Unpacked));
  for (std::size_t index = first_tile; index < last_tile; ++index) {
    unpack<Format>(weights.tile(index), weights.blocks(), scratch);
    const std::size_t left = weights.outputs() - index * tile_outputs;
    const std::size_t used = left < tile_outputs ? left : tile_outputs;
    float* const to = out.data + index * tile_outputs - out.first;
    // The next tile is asked for a little with each pass over the rows.
    const std::byte* const next = weights.tile(index) + weights.tile_bytes();
    const std::size_t passes = (last_row - first_row) / row_tile;
    const std::size_t step = (weights.tile_bytes() / 64 + passes - 1) / passes * 64;
    std::size_t asked = 0;
    std::size_t row = first_row;
    for (; row + row_tile <= last_row; row += row_tile) {
      for (const std::size_t end = asked + step; asked < end && asked < weights.tile_bytes(); asked += 64) {
        ask(next + asked);
      }
      tile_rows<Unpacked, row_tile>(scratch, weights.blocks(), used, in, row, out, to);
    }
    for (; row + 2 <= last_row; row += 2) {
      tile_rows<Unpacked, 2>(scratch, weights.blocks(), used, in, row, out, to);
    }
    if (row < last_row) {
      tile_rows<Unpacked, 1>(scratch, weights.blocks(), used, in, row, out, to);
    }
  }
}

#endif

void product_many(const packed_part& weights, const product_input& in, std::size_t first_row,
  std::size_t last_row, std::size_t first_tile, std::size_t last_tile, const product_output& out,
  std::byte* scratch) {
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_SSE4
  using enum weight_format;
  const auto call = [&](auto function) {
    function(weights, in, first_row, last_row, first_tile, last_tile, out, scratch);
  };
  switch (weights.format()) {
  case q4_signed:
    return call(&product_of<q4_signed, q4_signed>);
  case q4_min:
    return call(&product_of<q4_min, q4_min_wide>);
  case q4_min_wide:
    return call(&product_of<q4_min_wide, q4_min_wide>);
  case q8:
    return call(&product_of<q8, q8>);
  case q5_signed:
    return call(&product_of<q5_signed, q8>);
  case q5_min:
    return call(&product_of<q5_min, q5_min_wide>);
  case q5_min_wide:
    return call(&product_of<q5_min_wide, q5_min_wide>);
  case q6_half:
    return call(&product_of<q6_half, q6_half>);
  default:
    break; // float weights need no unpacking
  }
#else
  static_cast<void>(scratch); // slow as they are, these would gain little
#endif
  product_few(weights, in, first_row, last_row, first_tile, last_tile, out);
}

void product(const packed_part& weights, const product_input& in, std::size_t first_row, std::size_t last_row,
  std::size_t first_tile, std::size_t last_tile, const product_output& out, std::byte* scratch) {
  if (last_row - first_row < many_rows) {
    product_few(weights, in, first_row, last_row, first_tile, last_tile, out);
  } else {
    product_many(weights, in, first_row, last_row, first_tile, last_tile, out, scratch);
  }
}

} // namespace

void fill_product(kernel_table& table) {
  table.compiled_for = [] { return std::int64_t{HWY_TARGET}; };
  table.product = &product;
}

} // namespace godwit::ops::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
