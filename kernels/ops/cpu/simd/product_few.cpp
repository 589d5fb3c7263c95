// Matrix products for few rows: weights are unpacked in registers and used for up to four rows. Compiled once
// for each target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/cpu/simd/product_few.cpp"
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

/// Rows in registers, at most: as many as the sums leave room for, since what it costs to unpack a weight is
/// shared by them.
inline constexpr std::size_t row_tile = vectors == 2 ? 6 : 4;

/// How far ahead of its use a weight is asked for: what the memory delivers during one round trip. Tiles lie
/// one behind the other, so that the next one's beginning is asked for as well.
inline constexpr std::size_t ahead = 8192;

/// Runs of outputs that are computed one after the other in a tile.
inline constexpr std::size_t strips = tile_outputs / strip;

/// What a pass over a tile asks for. The first one asks for what it will itself read soon. Where more follow,
/// each of them asks for its part of the next tile, so that the memory is busy while the caches are read.
struct asking {
  bool first = true;
  std::size_t wait = ~std::size_t{0}; ///< blocks until one of the next tile is asked for
  std::size_t passes = 1;             ///< that share the next tile
  std::size_t next_tile = 0;          ///< bytes from a tile to the next
  reading_list* later = nullptr;

  HWY_INLINE static asking of(
    std::size_t pass, std::size_t passes, std::size_t tile_bytes, reading_list* later) {
    return passes == 1 ? asking{} : asking{pass == 0, pass, passes, tile_bytes, later};
  }

  /// Asks while the block is used that begins at `block`.
  HWY_INLINE void operator()(const std::byte* block, std::size_t bytes) {
    if (first) {
      for (std::size_t line = 0; line < bytes; line += 64) {
        ask(block + ahead + line);
      }
    }
    if (wait-- == 0) {
      const std::byte* const next = block + next_tile;
      for (std::size_t line = 0; line < bytes; line += 64) {
        ask(next + line);
      }
      wait = passes - 1;
    }
    if (later != nullptr && later->run < later->count) {
      ask_later(*later);
    }
  }

  HWY_INLINE static void ask_later(reading_list& list) {
    const std::byte* const from = list.runs[list.run] + list.offset;
    for (std::size_t line = 0; line < list.lines; ++line) {
      ask(from + line * 64);
    }
    list.offset += list.lines * 64;
    if (list.offset >= list.run_bytes) {
      list.offset = 0;
      ++list.run;
    }
  }
};

/// Outputs `[output, output + strip)` of one tile for `Rows` rows, quantised weights.
template <weight_format Format, std::size_t Rows>
HWY_INLINE void quantised(const std::byte* tile, std::size_t blocks, std::size_t output,
  const std::int8_t* const* x, const block_info* const* info, asking asks, sums<Rows, vectors>& sum) {
  constexpr std::size_t halves = scale_parts<Format>;
  clear<Rows, vectors>(sum);
  for (std::size_t b = 0; b < blocks; ++b, tile += traits(Format).block_stride()) {
    const auto* const weights = reinterpret_cast<const std::uint8_t*>(tile) + output * 4;
    const std::byte* const coefficients = tile + traits(Format).block_bytes();
    asks(tile, traits(Format).block_stride());
    for (std::size_t half = 0; half < halves; ++half) {
      block_dots<Format, Rows, vectors> dots;
      start<Format, Rows, vectors>(dots, info, b, half);
      if constexpr (traits(Format).bits == 4) {
        // Both halves of a byte while it is in a register.
#pragma GCC unroll 4
        for (std::size_t g = 0; g < 4; ++g) {
          vint low[vectors];
          vint high[vectors];
          for (std::size_t v = 0; v < vectors; ++v) {
            const vint packed = load_weights(weights + g * group_bytes + v * lanes * 4);
            low[v] = low_nibbles(packed);
            high[v] = high_nibbles(packed);
          }
          add_group<Format, Rows, vectors>(dots, low, x, b * block_inputs + g * 4);
          add_group<Format, Rows, vectors>(dots, high, x, b * block_inputs + 16 + g * 4);
        }
      } else {
#pragma GCC unroll 8
        for (std::size_t i = 0; i < 8 / halves; ++i) {
          const std::size_t g = half * 4 + i;
          typename dot_of<Format>::operand w[vectors];
          for (std::size_t v = 0; v < vectors; ++v) {
            w[v] = dot_of<Format>::prepare(load_group<Format>(weights + v * lanes * 4, g));
          }
          add_group<Format, Rows, vectors>(dots, w, x, b * block_inputs + g * 4);
        }
      }
      vfloat scales[vectors];
      for (std::size_t v = 0; v < vectors; ++v) {
        scales[v] = load_coefficients<Format>(coefficients, half, output + v * lanes);
      }
      add_scaled<Format, Rows, vectors>(dots, info, b, half, scales, sum);
    }
    if constexpr (has_minimum<Format>) {
      vfloat minima[vectors];
      for (std::size_t v = 0; v < vectors; ++v) {
        minima[v] = load_coefficients<Format>(coefficients, 1, output + v * lanes);
      }
      add_minima<Rows, vectors>(info, b, minima, sum);
    }
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
HWY_INLINE void floating(const std::byte* tile, std::size_t inputs, std::size_t output, const float* const* x,
  sums<Rows, vectors>& sum) {
  clear<Rows, vectors>(sum);
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
  std::size_t row, std::size_t group, std::size_t groups, const product_output& out) {
  const std::byte* const tile = weights.tile(index);
  const std::size_t left = weights.outputs() - index * tile_outputs;
  const std::size_t used = left < tile_outputs ? left : tile_outputs;
  float* const to = out.data + row * out.stride + index * tile_outputs - out.first;
  for (std::size_t output = 0; output < used; output += strip) {
    sums<Rows, vectors> sum;
    if constexpr (traits(Format).quantised) {
      const std::int8_t* x[Rows];
      const block_info* info[Rows];
      for (std::size_t r = 0; r < Rows; ++r) {
        x[r] = in.quants + (row + r) * in.stride;
        info[r] = in.blocks + (row + r) * (in.stride / block_inputs);
      }
      const auto asks =
        asking::of(group * strips + output / strip, groups * strips, weights.tile_bytes(), in.later);
      quantised<Format, Rows>(tile, weights.blocks(), output, x, info, asks, sum);
    } else {
      const float* x[Rows];
      for (std::size_t r = 0; r < Rows; ++r) {
        x[r] = in.floats + (row + r) * in.stride;
      }
      floating<Format, Rows>(tile, weights.inputs(), output, x, sum);
    }
    const std::size_t count = used - output < strip ? used - output : strip;
    write<Rows, vectors>(sum, count, out, to + output);
  }
}

/// Calls `use` with a number of rows that the compiler knows.
template <std::size_t Most, class Use>
HWY_INLINE void with_rows(std::size_t rows, Use&& use) {
  if constexpr (Most > 0) {
    if (rows == Most) {
      use.template operator()<Most>();
    } else {
      with_rows<Most - 1>(rows, use);
    }
  }
}

template <weight_format Format>
void product_of(const packed_part& weights, const product_input& in, std::size_t first_row,
  std::size_t last_row, std::size_t first_tile, std::size_t last_tile, const product_output& out) {
  // Evenly, since the fewer rows share a weight that was unpacked the more it costs.
  const std::size_t groups = (last_row - first_row + row_tile - 1) / row_tile;
  for (std::size_t tile = first_tile; tile < last_tile; ++tile) {
    std::size_t row = first_row;
    for (std::size_t group = 0; group < groups; ++group) {
      const std::size_t rows = (last_row - row) / (groups - group);
      with_rows<row_tile>(rows,
        [&]<std::size_t Rows>() { tile_rows<Format, Rows>(weights, tile, in, row, group, groups, out); });
      row += rows;
    }
  }
}

} // namespace

void product_few(const packed_part& weights, const product_input& in, std::size_t first_row,
  std::size_t last_row, std::size_t first_tile, std::size_t last_tile, const product_output& out) {
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
  case weight_format::q5_signed:
    return call(&product_of<weight_format::q5_signed>);
  case weight_format::q5_min:
    return call(&product_of<weight_format::q5_min>);
  case weight_format::q5_min_wide:
    return call(&product_of<weight_format::q5_min_wide>);
  case weight_format::q6_half:
    return call(&product_of<weight_format::q6_half>);
  case weight_format::f32:
    return call(&product_of<weight_format::f32>);
  case weight_format::f16:
    return call(&product_of<weight_format::f16>);
  case weight_format::bf16:
    return call(&product_of<weight_format::bf16>);
  }
}

} // namespace godwit::ops::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
