// Exact integer dot products of 32 unsigned 4-bit or 8-bit weights with 32 signed 8-bit activations. A lane
// holds the sum of one output; a vector of weights holds four inputs of each of its outputs. Included once
// for each target. Three ways: VNNI; pairs by maddubs (SSSE3 and up); plain multiplications.
#if defined(GODWIT_OPS_CPU_DOT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef GODWIT_OPS_CPU_DOT_INL
#undef GODWIT_OPS_CPU_DOT_INL
#else
#define GODWIT_OPS_CPU_DOT_INL
#endif

#include "kernels/ops/cpu/simd/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
#if HWY_TARGET == HWY_AVX3_DL
// Highway 1.0.3 asks the processor for this but names another one to the compiler.
#pragma GCC target("avx512vnni")
#endif
namespace godwit::ops::cpu::HWY_NAMESPACE {

/// Four activations in every lane.
HWY_INLINE vint four(const std::int8_t* quants) {
  std::int32_t word;
  __builtin_memcpy(&word, quants, sizeof word);
  return hn::Set(int_tag(), word);
}

HWY_INLINE vint load_weights(const std::uint8_t* from) {
#if HWY_TARGET == HWY_SCALAR
  std::int32_t word;
  __builtin_memcpy(&word, from, sizeof word);
  return hn::Set(int_tag(), word);
#else
  const hn::Repartition<std::uint8_t, int_tag> bytes;
  return hn::BitCast(int_tag(), hn::LoadU(bytes, from));
#endif
}

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4

// Sums of neighbouring products as 16 bits, and sums of neighbours of those as 32.
HWY_INLINE vint pairs(vint weights, vint x) {
#if HWY_TARGET == HWY_AVX3
  return vint{_mm512_maddubs_epi16(weights.raw, x.raw)};
#elif HWY_TARGET == HWY_AVX2
  return vint{_mm256_maddubs_epi16(weights.raw, x.raw)};
#else
  return vint{_mm_maddubs_epi16(weights.raw, x.raw)};
#endif
}
HWY_INLINE vint add_pairs(vint a, vint b) {
  const hn::Repartition<std::int16_t, int_tag> shorts;
  vint sum = hn::BitCast(int_tag(), hn::Add(hn::BitCast(shorts, a), hn::BitCast(shorts, b)));
  // The compiler would turn a chain of these into a tree, with more terms at a time than there are registers.
  asm("" : "+v"(sum.raw));
  return sum;
}
HWY_INLINE vint widen(vint a) {
#if HWY_TARGET == HWY_AVX3
  return vint{_mm512_madd_epi16(a.raw, _mm512_set1_epi16(1))};
#elif HWY_TARGET == HWY_AVX2
  return vint{_mm256_madd_epi16(a.raw, _mm256_set1_epi16(1))};
#else
  return vint{_mm_madd_epi16(a.raw, _mm_set1_epi16(1))};
#endif
}
/// x with the signs of the weights.
HWY_INLINE vint with_sign(vint x, vint weights) {
#if HWY_TARGET == HWY_AVX3
  const auto negative = _mm512_movepi8_mask(weights.raw);
  return vint{_mm512_mask_sub_epi8(x.raw, negative, _mm512_setzero_si512(), x.raw)};
#elif HWY_TARGET == HWY_AVX2
  return vint{_mm256_sign_epi8(x.raw, weights.raw)};
#else
  return vint{_mm_sign_epi8(x.raw, weights.raw)};
#endif
}
HWY_INLINE vint magnitude(vint weights) {
  const hn::Repartition<std::int8_t, int_tag> bytes;
  return hn::BitCast(int_tag(), hn::Abs(hn::BitCast(bytes, weights)));
}

/// 4-bit weights: a pair's sum is at most 2 * 15 * 127, eight of them fit 16 bits.
struct nibble_dot {
  using operand = vint;
  vint pair_sums;

  HWY_INLINE void start(std::int32_t) { pair_sums = hn::Zero(int_tag()); }
  static HWY_INLINE operand prepare(vint weights) { return weights; }
  HWY_INLINE void add(const operand& weights, vint x) { pair_sums = add_pairs(pair_sums, pairs(weights, x)); }
  HWY_INLINE vint finish(std::int32_t offset) const {
    return hn::Add(widen(pair_sums), hn::Set(int_tag(), offset));
  }
};

/// 8-bit weights, stored plus 128: made signed again, their signs moved to the activations. A pair's sum is
/// at most 2 * 128 * 127, which still fits.
struct byte_dot {
  struct operand {
    vint weights;
    vint magnitudes;
  };
  vint sums;

  HWY_INLINE void start(std::int32_t) { sums = hn::Zero(int_tag()); }
  static HWY_INLINE operand prepare(vint weights) {
    const vint restored = hn::Xor(weights, hn::Set(int_tag(), static_cast<std::int32_t>(0x80808080U)));
    return {restored, magnitude(restored)};
  }
  HWY_INLINE void add(const operand& w, vint x) {
    sums = hn::Add(sums, widen(pairs(w.magnitudes, with_sign(x, w.weights))));
    asm("" : "+v"(sums.raw)); // as above
  }
  HWY_INLINE vint finish(std::int32_t) const { return sums; }
};

#else

/// The sum of four products in each lane.
HWY_INLINE vint add_products(vint sums, vint weights, vint x) {
#if HWY_TARGET == HWY_AVX3_DL
  return vint{_mm512_dpbusd_epi32(sums.raw, weights.raw, x.raw)};
#else
  const vint low = hn::Set(int_tag(), 0xFF);
  sums = hn::Add(sums, hn::Mul(hn::And(weights, low), hn::ShiftRight<24>(hn::ShiftLeft<24>(x))));
  sums = hn::Add(
    sums, hn::Mul(hn::And(hn::ShiftRight<8>(weights), low), hn::ShiftRight<24>(hn::ShiftLeft<16>(x))));
  sums = hn::Add(
    sums, hn::Mul(hn::And(hn::ShiftRight<16>(weights), low), hn::ShiftRight<24>(hn::ShiftLeft<8>(x))));
  return hn::Add(sums, hn::Mul(hn::And(hn::ShiftRight<24>(weights), low), hn::ShiftRight<24>(x)));
#endif
}

/// Weights as they are stored; the sum starts with what takes their offset back.
struct unsigned_dot {
  using operand = vint;
  vint sums;

  HWY_INLINE void start(std::int32_t offset) { sums = hn::Set(int_tag(), offset); }
  static HWY_INLINE operand prepare(vint weights) { return weights; }
  HWY_INLINE void add(const operand& weights, vint x) { sums = add_products(sums, weights, x); }
  HWY_INLINE vint finish(std::int32_t) const { return sums; }
};
using nibble_dot = unsigned_dot;
using byte_dot = unsigned_dot;

#endif

HWY_INLINE vint low_nibbles(vint packed) {
  return hn::And(packed, hn::Set(int_tag(), 0x0F0F0F0F));
}
HWY_INLINE vint high_nibbles(vint packed) {
  return low_nibbles(hn::ShiftRight<4>(packed));
}

} // namespace godwit::ops::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
