// What both kinds of matrix product share: sums of a tile in registers, and the numbers of a format. Included
// once for each target.
#if defined(GODWIT_OPS_CPU_TILE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef GODWIT_OPS_CPU_TILE_INL
#undef GODWIT_OPS_CPU_TILE_INL
#else
#define GODWIT_OPS_CPU_TILE_INL
#endif

#include "kernels/ops/cpu/kernels.hpp"
#include "kernels/ops/cpu/simd/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
#if HWY_TARGET == HWY_AVX3_DL
// As in dot-inl.hpp; a declaration for another target would be another function.
#pragma GCC target("avx512vnni")
#endif
namespace godwit::ops::cpu::HWY_NAMESPACE {

// Vectors of outputs and rows that stand in registers at the same time: two sums for each pair of them, one
// of integers and one of floats.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
inline constexpr std::size_t vectors = 2;
#else
inline constexpr std::size_t vectors = 1;
#endif
/// Outputs that are computed together.
inline constexpr std::size_t strip = vectors * lanes;

/// Four inputs of the 32 outputs of a tile.
inline constexpr std::size_t group_bytes = tile_outputs * 4;

template <std::size_t Rows>
using sums = vfloat[Rows][vectors];

template <std::size_t Rows>
HWY_INLINE void clear(sums<Rows>& sum) {
  for (std::size_t r = 0; r < Rows; ++r) {
    for (std::size_t v = 0; v < vectors; ++v) {
      sum[r][v] = constant(0.0F);
    }
  }
}

/// Writes sums to `count` <= strip outputs, or adds them to what is there.
template <std::size_t Rows>
HWY_INLINE void write(const sums<Rows>& sum, std::size_t count, const product_output& out, float* to) {
  for (std::size_t r = 0; r < Rows; ++r, to += out.stride) {
    if (count == strip) {
      for (std::size_t v = 0; v < vectors; ++v) {
        float* const at = to + v * lanes;
        hn::StoreU(out.add ? hn::Add(hn::LoadU(float_tag(), at), sum[r][v]) : sum[r][v], float_tag(), at);
      }
      continue;
    }
    float values[strip];
    for (std::size_t v = 0; v < vectors; ++v) {
      hn::StoreU(sum[r][v], float_tag(), values + v * lanes);
    }
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = out.add ? to[i] + values[i] : values[i];
    }
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

/// Scales for parts of a block.
template <weight_format Format>
inline constexpr std::size_t scale_parts = Format == weight_format::q8_half ? 2 : 1;

/// The coefficients of `lanes` outputs of a block.
template <weight_format Format>
HWY_INLINE vfloat load_coefficients(const std::byte* from, std::size_t which, std::size_t output) {
  if constexpr (traits(Format).coefficient_bytes == 2) {
    return load_halves(reinterpret_cast<const std::uint16_t*>(from) + which * tile_outputs + output);
  } else {
    return hn::LoadU(float_tag(), reinterpret_cast<const float*>(from) + which * tile_outputs + output);
  }
}

/// Asks for a cache line that will be read soon. Any address is allowed.
HWY_INLINE void ask(const std::byte* line) {
  __builtin_prefetch(line, 0, 3);
}

/// `product` of kernels.hpp for few rows.
void product_few(const packed_part& weights, const product_input& in, std::size_t first_row,
  std::size_t last_row, std::size_t first_tile, std::size_t last_tile, const product_output& out);
} // namespace godwit::ops::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
