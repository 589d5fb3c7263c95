// Attention over pages of halves, and what its segments need whatever the pages are. Compiled once for each
// target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/cpu/simd/attention.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include "kernels/ops/cpu/kernels.hpp"
#include "kernels/ops/cpu/simd/attention-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace godwit::ops::cpu::HWY_NAMESPACE {
namespace {

void merge(const float* later, std::size_t head_dim, float* result) {
  if (later[1] == 0.0F) {
    return; // nothing was seen there
  }
  if (result[1] == 0.0F) {
    __builtin_memcpy(result, later, partial_size(head_dim) * sizeof(float));
    return;
  }
  const float maximum = result[0] > later[0] ? result[0] : later[0];
  const vfloat keep = exponential(constant(result[0] - maximum));
  const vfloat take = exponential(constant(later[0] - maximum));
  result[0] = maximum;
  result[1] = __builtin_fmaf(result[1], hn::GetLane(keep), later[1] * hn::GetLane(take));
  for (std::size_t d = 2; d < head_dim + 2; d += lanes) {
    const vfloat part = hn::Mul(hn::LoadU(float_tag(), later + d), take);
    hn::StoreU(fused(hn::LoadU(float_tag(), result + d), keep, part), float_tag(), result + d);
  }
}

void normalise(const float* partial, std::size_t head_dim, float* y) {
  for (std::size_t d = 0; d < head_dim; d += lanes) {
    hn::StoreU(hn::Div(hn::LoadU(float_tag(), partial + 2 + d), constant(partial[1])), float_tag(), y + d);
  }
}

} // namespace

void fill_attention(kernel_table& table) {
  table.halves.attend = &attend<kv_type::f16>;
  table.merge = &merge;
  table.normalise = &normalise;
}

} // namespace godwit::ops::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
