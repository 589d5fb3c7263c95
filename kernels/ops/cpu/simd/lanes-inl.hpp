// Vectors as the ops use them: up to 16 float lanes, a fused multiply-add that is fused on every target, sums
// in 16 virtual lanes, half precision, exp. Included once for each target; see kernels.hpp for the orders.
// Nothing here calls inline functions of the standard library: they could be compiled for a target that the
// machine does not have and then be shared with code that runs everywhere.
#if defined(GODWIT_OPS_CPU_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef GODWIT_OPS_CPU_LANES_INL
#undef GODWIT_OPS_CPU_LANES_INL
#else
#define GODWIT_OPS_CPU_LANES_INL
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace godwit::ops::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using float_tag = hn::CappedTag<float, 16>;
using int_tag = hn::RebindToSigned<float_tag>;
using vfloat = hn::Vec<float_tag>;
using vint = hn::Vec<int_tag>;

/// Lanes of one vector, and vectors of 16 virtual lanes.
inline constexpr std::size_t lanes = hn::MaxLanes(float_tag());
inline constexpr std::size_t parts = 16 / lanes;

/// a * b + c, rounded once.
HWY_INLINE vfloat fused(vfloat a, vfloat b, vfloat c) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(a, b, c);
#else
  HWY_ALIGN float x[lanes];
  HWY_ALIGN float y[lanes];
  HWY_ALIGN float z[lanes];
  hn::Store(a, float_tag(), x);
  hn::Store(b, float_tag(), y);
  hn::Store(c, float_tag(), z);
  for (std::size_t i = 0; i < lanes; ++i) {
    x[i] = __builtin_fmaf(x[i], y[i], z[i]);
  }
  return hn::Load(float_tag(), x);
#endif
}

HWY_INLINE vfloat constant(float value) {
  return hn::Set(float_tag(), value);
}

/// 16 virtual lanes.
struct wide {
  vfloat part[parts];
};

HWY_INLINE wide all(float value) {
  wide made;
  for (std::size_t p = 0; p < parts; ++p) {
    made.part[p] = constant(value);
  }
  return made;
}

HWY_INLINE wide load(const float* from) {
  wide made;
  for (std::size_t p = 0; p < parts; ++p) {
    made.part[p] = hn::LoadU(float_tag(), from + p * lanes);
  }
  return made;
}

HWY_INLINE void save(const wide& what, float* to) {
  for (std::size_t p = 0; p < parts; ++p) {
    hn::StoreU(what.part[p], float_tag(), to + p * lanes);
  }
}

#if HWY_TARGET != HWY_SCALAR
/// Adds the upper half of the lanes to the lower one until there are four.
template <class Tag>
HWY_INLINE hn::Vec<hn::CappedTag<float, 4>> four_of(Tag tag, hn::Vec<Tag> v) {
  if constexpr (hn::MaxLanes(tag) == 4) {
    return v;
  } else {
    const hn::Half<Tag> half;
    return four_of(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}
#endif

/// The sum of 16 lanes as a tree.
HWY_INLINE float sum(const wide& what) {
  // Vectors first, as long as there are two to add; then within one.
  vfloat left[parts];
  for (std::size_t p = 0; p < parts; ++p) {
    left[p] = what.part[p];
  }
  for (std::size_t half = parts / 2; half != 0; half /= 2) {
    for (std::size_t p = 0; p < half; ++p) {
      left[p] = hn::Add(left[p], left[p + half]);
    }
  }
#if HWY_TARGET == HWY_SCALAR
  return hn::GetLane(left[0]);
#else
  const auto quarter = four_of(float_tag(), left[0]);
  const auto pair = hn::Add(quarter, hn::Shuffle1032(quarter));
  return hn::GetLane(hn::Add(pair, hn::Shuffle2301(pair)));
#endif
}

/// The greatest of 16 lanes, of which some may be NaN.
HWY_INLINE float greatest(const wide& what) {
  vfloat best = what.part[0];
  for (std::size_t p = 1; p < parts; ++p) {
    best = hn::Max(what.part[p], best);
  }
  return hn::GetLane(hn::MaxOfLanes(float_tag(), best));
}

/// A vector of half precision numbers as floats; exact.
HWY_INLINE vfloat load_halves(const std::uint16_t* from) {
  const hn::Rebind<hwy::float16_t, float_tag> halves;
  const hn::Rebind<std::uint16_t, float_tag> bits;
  const auto loaded = hn::LoadU(bits, from);
  const vfloat made = hn::PromoteTo(float_tag(), hn::BitCast(halves, loaded));
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SCALAR
  // Without an instruction for it Highway takes infinity and NaN for numbers beyond the greatest half.
  const hn::RebindToUnsigned<float_tag> words;
  const auto word = hn::PromoteTo(words, loaded);
  const auto exponent = hn::Set(words, 0x7C00U);
  const auto none = hn::Eq(hn::And(word, exponent), exponent);
  const auto sign = hn::ShiftLeft<16>(hn::And(word, hn::Set(words, 0x8000U)));
  const auto mantissa = hn::ShiftLeft<13>(hn::And(word, hn::Set(words, 0x3FFU)));
  const auto special = hn::Or(hn::Or(sign, hn::Set(words, 0x7F800000U)), mantissa);
  return hn::IfThenElse(hn::RebindMask(float_tag(), none), hn::BitCast(float_tag(), special), made);
#else
  return made;
#endif
}

/// A vector of bfloat16 numbers as floats; exact.
HWY_INLINE vfloat load_bfloats(const std::uint16_t* from) {
  const hn::Rebind<std::uint16_t, float_tag> bits;
  const hn::Rebind<std::uint32_t, float_tag> words;
  return hn::BitCast(float_tag(), hn::ShiftLeft<16>(hn::PromoteTo(words, hn::LoadU(bits, from))));
}

/// The nearest integers, ties to even, of magnitudes below 2^22: adding 1.5 * 2^23 leaves them in the low
/// bits.
HWY_INLINE vint nearest(vfloat x) {
  const vfloat shifted = hn::Add(x, constant(12582912.0F));
  return hn::Sub(hn::BitCast(int_tag(), shifted), hn::Set(int_tag(), 0x4B400000));
}

/// exp(x) for x <= 88, 0 below -87. x = n ln 2 + r with |r| <= ln(2)/2; the polynomial for exp(r) is that of
/// the Cephes library (expf), evaluated by fused multiply-adds; relative error below 2e-7.
HWY_INLINE vfloat exponential(vfloat x) {
  const vfloat shifted = fused(x, constant(1.44269504088896341F), constant(12582912.0F));
  const vfloat n = hn::Sub(shifted, constant(12582912.0F));
  vfloat r = fused(n, constant(-0.693359375F), x);
  r = fused(n, constant(2.12194440e-4F), r);
  vfloat y = constant(1.9875691500e-4F);
  y = fused(y, r, constant(1.3981999507e-3F));
  y = fused(y, r, constant(8.3334519073e-3F));
  y = fused(y, r, constant(4.1665795894e-2F));
  y = fused(y, r, constant(1.6666665459e-1F));
  y = fused(y, r, constant(5.0000001201e-1F));
  y = fused(y, hn::Mul(r, r), r);
  y = hn::Add(y, constant(1.0F));
  const vint exponent = hn::Sub(hn::BitCast(int_tag(), shifted), hn::Set(int_tag(), 0x4B400000 - 127));
  const vfloat power = hn::BitCast(float_tag(), hn::ShiftLeft<23>(exponent));
  return hn::IfThenZeroElse(hn::Lt(x, constant(-87.0F)), hn::Mul(y, power));
}

/// cap * tanh(x / cap); NaN stays NaN.
HWY_INLINE vfloat capped(vfloat x, float cap) {
  // Beyond 88 the exponential would overflow; the hyperbolic tangent is 1 long before.
  const vfloat e = exponential(hn::Min(hn::Mul(x, constant(2.0F / cap)), constant(88.0F)));
  const vfloat tangent = hn::Sub(constant(1.0F), hn::Div(constant(2.0F), hn::Add(constant(1.0F), e)));
  return hn::IfThenElse(hn::Eq(x, x), hn::Mul(tangent, constant(cap)), x);
}

} // namespace godwit::ops::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
