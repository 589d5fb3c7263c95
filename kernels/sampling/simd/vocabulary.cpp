// Compiled once for each target. Only single IEEE operations, so that all give the same bits; nothing here
// calls inline functions of the standard library, which could be compiled for a target that the machine does
// not have and then be shared with code that runs everywhere.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/sampling/simd/vocabulary.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include "kernels/sampling/vocabulary.hpp"

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace godwit::vocabulary::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using float_tag = hn::CappedTag<float, 16>;
using int_tag = hn::RebindToSigned<float_tag>;
using vfloat = hn::Vec<float_tag>;
inline constexpr std::size_t lanes = hn::MaxLanes(float_tag());

// Eight virtual lanes of doubles.
using double_tag = hn::CappedTag<double, 8>;
using vdouble = hn::Vec<double_tag>;
inline constexpr std::size_t double_lanes = hn::MaxLanes(double_tag());
inline constexpr std::size_t parts = 8 / double_lanes;

HWY_INLINE vfloat constant(float value) {
  return hn::Set(float_tag(), value);
}

/// exp_nonpositive of elementary.hpp, operation by operation.
HWY_INLINE vfloat exp_nonpositive(vfloat x) {
  const vfloat kept = hn::IfThenElse(hn::Lt(x, constant(-87.0F)), constant(-87.0F), x);
  const vfloat shift = constant(12582912.0F);
  const vfloat shifted = hn::Add(hn::Mul(kept, constant(1.44269504088896341F)), shift);
  const vfloat n = hn::Sub(shifted, shift);
  vfloat r = hn::Sub(kept, hn::Mul(n, constant(0.693359375F)));
  r = hn::Sub(r, hn::Mul(n, constant(-2.12194440e-4F)));
  vfloat p = constant(1.9875691500e-4F);
  p = hn::Add(hn::Mul(p, r), constant(1.3981999507e-3F));
  p = hn::Add(hn::Mul(p, r), constant(8.3334519073e-3F));
  p = hn::Add(hn::Mul(p, r), constant(4.1665795894e-2F));
  p = hn::Add(hn::Mul(p, r), constant(1.6666665459e-1F));
  p = hn::Add(hn::Mul(p, r), constant(5.0000001201e-1F));
  p = hn::Add(hn::Mul(p, hn::Mul(r, r)), r);
  p = hn::Add(p, constant(1.0F));
  const auto power =
    hn::Add(hn::Sub(hn::BitCast(int_tag(), shifted), hn::BitCast(int_tag(), shift)), hn::Set(int_tag(), 127));
  const vfloat result = hn::Mul(p, hn::BitCast(float_tag(), hn::ShiftLeft<23>(power)));
  return hn::IfThenZeroElse(hn::Lt(x, constant(-87.0F)), result);
}

/// One block. @param count a multiple of `lanes`
HWY_INLINE float tame_block(const float* logits, std::size_t count, float* out) {
  const vfloat lowest = constant(-__builtin_inff());
  const vfloat highest = constant(__FLT_MAX__);
  vfloat most = lowest;
  for (std::size_t i = 0; i < count; i += lanes) {
    const vfloat x = hn::LoadU(float_tag(), logits + i);
    const vfloat number = hn::IfThenElse(hn::Eq(x, x), x, lowest);
    const vfloat tame = hn::IfThenElse(hn::Lt(highest, number), highest, number);
    hn::StoreU(tame, float_tag(), out + i);
    most = hn::IfThenElse(hn::Lt(most, tame), tame, most);
  }
  HWY_ALIGN float each[lanes];
  hn::Store(most, float_tag(), each);
  float greatest = each[0];
  for (std::size_t lane = 1; lane < lanes; ++lane) {
    greatest = each[lane] > greatest ? each[lane] : greatest;
  }
  return greatest;
}

/// One block. @param count a multiple of 16, so that it is one of 8 and of `lanes`
HWY_INLINE double weigh_block(
  const float* logits, std::size_t count, float greatest, float temperature, float least, float* weights) {
  const vfloat top = constant(greatest);
  const vfloat divisor = constant(temperature);
  const vfloat floor = constant(least);
  for (std::size_t i = 0; i < count; i += lanes) {
    const vfloat x = hn::Div(hn::Sub(hn::LoadU(float_tag(), logits + i), top), divisor);
    const vfloat weight = exp_nonpositive(x);
    hn::StoreU(hn::IfThenZeroElse(hn::Lt(weight, floor), weight), float_tag(), weights + i);
  }
  vdouble sums[parts];
  for (std::size_t p = 0; p < parts; ++p) {
    sums[p] = hn::Zero(double_tag());
  }
  const hn::Rebind<float, double_tag> narrow;
  for (std::size_t i = 0; i < count; i += 8) {
    for (std::size_t p = 0; p < parts; ++p) {
      sums[p] =
        hn::Add(sums[p], hn::PromoteTo(double_tag(), hn::LoadU(narrow, weights + i + p * double_lanes)));
    }
  }
  HWY_ALIGN double lane[8];
  for (std::size_t p = 0; p < parts; ++p) {
    hn::Store(sums[p], double_tag(), lane + p * double_lanes);
  }
  for (std::size_t half = 4; half != 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) {
      lane[i] += lane[i + half];
    }
  }
  return lane[0];
}

/// Calls `job(from, to)` with room for whole vectors: the last tokens go through a buffer that is filled up
/// with minus infinity, which has no weight.
template <class Job>
HWY_INLINE void in_blocks(const float* from, std::size_t count, float* to, Job job) {
  for (std::size_t start = 0; start < count; start += block) {
    const std::size_t size = count - start < block ? count - start : block;
    const std::size_t whole = (size + 15) / 16 * 16;
    if (whole == size) {
      job(from + start, whole, to + start);
      continue;
    }
    float in[block];
    float out[block];
    for (std::size_t i = 0; i < whole; ++i) {
      in[i] = i < size ? from[start + i] : -__builtin_inff();
    }
    job(in, whole, out);
    __builtin_memcpy(to + start, out, size * sizeof(float));
  }
}

void tame_all(const float* logits, std::size_t count, float* out, float* greatest) {
  in_blocks(logits, count, out, [&](const float* from, std::size_t size, float* to) HWY_ATTR {
    *greatest++ = tame_block(from, size, to);
  });
}

void weigh_all(const float* logits, std::size_t count, float greatest, float temperature, float least,
  float* weights, double* sums) {
  in_blocks(logits, count, weights, [&](const float* from, std::size_t size, float* to) HWY_ATTR {
    *sums++ = weigh_block(from, size, greatest, temperature, least, to);
  });
}

} // namespace
} // namespace godwit::vocabulary::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace godwit::vocabulary {

HWY_EXPORT(tame_all);
HWY_EXPORT(weigh_all);

void tame(std::span<const float> logits, float* out, float* greatest) {
  HWY_DYNAMIC_DISPATCH(tame_all)(logits.data(), logits.size(), out, greatest);
}

void weigh(std::span<const float> logits, float greatest, float temperature, float least, float* weights,
  double* sums) {
  HWY_DYNAMIC_DISPATCH(weigh_all)(logits.data(), logits.size(), greatest, temperature, least, weights, sums);
}

} // namespace godwit::vocabulary
#endif
