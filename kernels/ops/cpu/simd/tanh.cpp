// Ops with a hyperbolic tangent: the gate of GELU and soft caps. Compiled once for each target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/cpu/simd/tanh.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include "kernels/ops/cpu/kernels.hpp"
#include "kernels/ops/cpu/simd/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace godwit::ops::cpu::HWY_NAMESPACE {
namespace {

/// a / 2 * (1 + tanh(w / 2)) * b, since that is a / (1 + exp(-w)) * b.
HWY_INLINE vfloat gelu_gated(vfloat a, vfloat b) {
  const vfloat w = hn::Mul(fused(hn::Mul(a, a), constant(0.07135481627159F), constant(1.59576912160573F)), a);
  // Beyond 88 the exponential would overflow; a / (1 + e^88) is as good as zero.
  const vfloat e = exponential(hn::Min(hn::Neg(w), constant(88.0F)));
  return hn::Mul(hn::Div(a, hn::Add(constant(1.0F), e)), b);
}

void gate_gelu(const float* a, const float* b, std::size_t count, float* y) {
  const std::size_t whole = count / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes) {
    hn::StoreU(gelu_gated(hn::LoadU(float_tag(), a + i), hn::LoadU(float_tag(), b + i)), float_tag(), y + i);
  }
  for (std::size_t i = whole; i < count; ++i) {
    y[i] = hn::GetLane(gelu_gated(constant(a[i]), constant(b[i])));
  }
}

void cap(float* x, std::size_t count, float cap) {
  const std::size_t whole = count / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes) {
    hn::StoreU(capped(hn::LoadU(float_tag(), x + i), cap), float_tag(), x + i);
  }
  for (std::size_t i = whole; i < count; ++i) {
    x[i] = hn::GetLane(capped(constant(x[i]), cap));
  }
}

} // namespace

void fill_tanh(kernel_table& table) {
  table.gate_gelu = &gate_gelu;
  table.cap = &cap;
}

} // namespace godwit::ops::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
