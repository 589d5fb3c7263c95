// What both kinds of matrix product share: sums of a tile in registers, and the numbers of a format. Included
// once for each target.
#if defined(GODWIT_OPS_CPU_TILE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef GODWIT_OPS_CPU_TILE_INL
#undef GODWIT_OPS_CPU_TILE_INL
#else
#define GODWIT_OPS_CPU_TILE_INL
#endif

#include "kernels/ops/cpu/kernels.hpp"
#include "kernels/ops/cpu/simd/dot-inl.hpp"
#include "kernels/ops/cpu/simd/lanes-inl.hpp"

#include <type_traits>

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

template <std::size_t Rows, std::size_t Vectors>
using sums = vfloat[Rows][Vectors];

template <std::size_t Rows, std::size_t Vectors>
HWY_INLINE void clear(sums<Rows, Vectors>& sum) {
  for (std::size_t r = 0; r < Rows; ++r) {
    for (std::size_t v = 0; v < Vectors; ++v) {
      sum[r][v] = constant(0.0F);
    }
  }
}

/// Writes sums to the first `count` outputs, or adds them to what is there.
template <std::size_t Rows, std::size_t Vectors>
HWY_INLINE void write(
  const sums<Rows, Vectors>& sum, std::size_t count, const product_output& out, float* to) {
  for (std::size_t r = 0; r < Rows; ++r, to += out.stride) {
    if (count == Vectors * lanes) {
      for (std::size_t v = 0; v < Vectors; ++v) {
        float* const at = to + v * lanes;
        hn::StoreU(out.add ? hn::Add(hn::LoadU(float_tag(), at), sum[r][v]) : sum[r][v], float_tag(), at);
      }
      continue;
    }
    float values[Vectors * lanes];
    for (std::size_t v = 0; v < Vectors; ++v) {
      hn::StoreU(sum[r][v], float_tag(), values + v * lanes);
    }
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = out.add ? to[i] + values[i] : values[i];
    }
  }
}

/// Products of weights as bytes take them plus this, whatever their bits.
inline constexpr unsigned byte_offset = 128;

/// What the weights of a product are more than they should be, times the sum of the activations, negated.
template <weight_format Format>
HWY_INLINE std::int32_t offset_of(const block_info& info, std::size_t half) {
  if constexpr (Format == weight_format::q4_signed) {
    return info.minus_8;
  } else if constexpr (traits(Format).bits == 4) {
    return 0;
  } else if constexpr (Format == weight_format::q6_half) {
    return half == 0 ? info.minus_128_of_half : info.minus_128 - info.minus_128_of_half;
  } else {
    return info.minus_128;
  }
}

/// What a stored weight of more than four bits lacks as a byte.
template <weight_format Format>
HWY_INLINE vint as_byte(vint stored) {
  constexpr std::uint32_t missing = byte_offset - traits(Format).offset;
  if constexpr (missing == 0) {
    return stored;
  } else {
    // No byte overflows.
    return hn::Add(stored, hn::Set(int_tag(), static_cast<std::int32_t>(missing * 0x01010101U)));
  }
}

/// Bits 4 and up of the weights of group `g` (inputs 4g to 4g + 3), from the plane that holds them.
template <weight_format Format>
HWY_INLINE vint high_bits(vint plane, std::size_t g) {
  if constexpr (traits(Format).bits == 5) {
    const vint mask = hn::Set(int_tag(), 0x10101010);
    switch (g) {
    case 0:
      return hn::And(hn::ShiftLeft<4>(plane), mask);
    case 1:
      return hn::And(hn::ShiftLeft<3>(plane), mask);
    case 2:
      return hn::And(hn::ShiftLeft<2>(plane), mask);
    case 3:
      return hn::And(hn::ShiftLeft<1>(plane), mask);
    case 4:
      return hn::And(plane, mask);
    case 5:
      return hn::And(hn::ShiftRight<1>(plane), mask);
    case 6:
      return hn::And(hn::ShiftRight<2>(plane), mask);
    default:
      return hn::And(hn::ShiftRight<3>(plane), mask);
    }
  } else {
    const vint mask = hn::Set(int_tag(), 0x30303030);
    switch (g % 4) {
    case 0:
      return hn::And(hn::ShiftLeft<4>(plane), mask);
    case 1:
      return hn::And(hn::ShiftLeft<2>(plane), mask);
    case 2:
      return hn::And(plane, mask);
    default:
      return hn::And(hn::ShiftRight<2>(plane), mask);
    }
  }
}

/// The weights of group `g` as bytes, for `lanes` outputs. @param weights of the first of them in the block
template <weight_format Format>
HWY_INLINE vint load_group(const std::uint8_t* weights, std::size_t g) {
  constexpr std::size_t bits = traits(Format).bits;
  if constexpr (bits == 8) {
    return load_weights(weights + g * group_bytes);
  } else {
    const vint packed = load_weights(weights + g % 4 * group_bytes);
    const vint low = g < 4 ? low_nibbles(packed) : high_nibbles(packed);
    if constexpr (bits == 4) {
      return low;
    } else {
      const vint plane = load_weights(weights + (4 + (bits == 6 ? g / 4 : 0)) * group_bytes);
      return as_byte<Format>(hn::Or(low, high_bits<Format>(plane, g)));
    }
  }
}

/// Scales for parts of a block.
template <weight_format Format>
inline constexpr std::size_t scale_parts = Format == weight_format::q6_half ? 2 : 1;

template <weight_format Format>
inline constexpr bool has_minimum = traits(Format).coefficients == 2 && scale_parts<Format> == 1;

/// The coefficients of `lanes` outputs of a block.
template <weight_format Format>
HWY_INLINE vfloat load_coefficients(const std::byte* from, std::size_t which, std::size_t output) {
  if constexpr (traits(Format).coefficient_bytes == 2) {
    return load_halves(reinterpret_cast<const std::uint16_t*>(from) + which * tile_outputs + output);
  } else {
    return hn::LoadU(float_tag(), reinterpret_cast<const float*>(from) + which * tile_outputs + output);
  }
}

template <weight_format Format>
using dot_of = std::conditional_t<traits(Format).bits == 4, nibble_dot, byte_dot>;

/// Exact sums of a block, or of a half with a scale of its own: for each row and vector of outputs.
template <weight_format Format, std::size_t Rows, std::size_t Vectors>
using block_dots = dot_of<Format>[Rows][Vectors];

template <weight_format Format, std::size_t Rows, std::size_t Vectors>
HWY_INLINE void start(block_dots<Format, Rows, Vectors>& dots, const block_info* const* info,
  std::size_t block, std::size_t half) {
  for (std::size_t r = 0; r < Rows; ++r) {
    for (std::size_t v = 0; v < Vectors; ++v) {
      dots[r][v].start(offset_of<Format>(info[r][block], half));
    }
  }
}

/// Adds the products of one group. @param at its first input
template <weight_format Format, std::size_t Rows, std::size_t Vectors>
HWY_INLINE void add_group(block_dots<Format, Rows, Vectors>& dots,
  const typename dot_of<Format>::operand (&weights)[Vectors], const std::int8_t* const* x, std::size_t at) {
  for (std::size_t r = 0; r < Rows; ++r) {
    const vint inputs = four(x[r] + at);
    for (std::size_t v = 0; v < Vectors; ++v) {
      dots[r][v].add(weights[v], inputs);
    }
  }
}

/// Adds the exact sums times their scales.
template <weight_format Format, std::size_t Rows, std::size_t Vectors>
HWY_INLINE void add_scaled(const block_dots<Format, Rows, Vectors>& dots, const block_info* const* info,
  std::size_t block, std::size_t half, const vfloat (&scales)[Vectors], sums<Rows, Vectors>& sum) {
  for (std::size_t v = 0; v < Vectors; ++v) {
    for (std::size_t r = 0; r < Rows; ++r) {
      const block_info& own = info[r][block];
      const vfloat exact = hn::ConvertTo(float_tag(), dots[r][v].finish(offset_of<Format>(own, half)));
      sum[r][v] = fused(exact, hn::Mul(scales[v], constant(own.scale)), sum[r][v]);
    }
  }
}

/// Adds the minima of a block.
template <std::size_t Rows, std::size_t Vectors>
HWY_INLINE void add_minima(const block_info* const* info, std::size_t block, const vfloat (&minima)[Vectors],
  sums<Rows, Vectors>& sum) {
  for (std::size_t v = 0; v < Vectors; ++v) {
    for (std::size_t r = 0; r < Rows; ++r) {
      sum[r][v] = fused(minima[v], constant(info[r][block].scaled_sum), sum[r][v]);
    }
  }
}

/// Asks for a cache line that will be read soon. Any address is allowed.
HWY_INLINE void ask(const std::byte* line) {
  __builtin_prefetch(line, 0, 2);
}

/// `product` of kernels.hpp for few rows.
void product_few(const packed_part& weights, const product_input& in, std::size_t first_row,
  std::size_t last_row, std::size_t first_tile, std::size_t last_tile, const product_output& out);
} // namespace godwit::ops::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
