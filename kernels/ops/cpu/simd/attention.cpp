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

/// Partials that follow each other, each like `merge` into the sum of those before: first the factors of 16
/// of them, whose exponentials do not wait for each other, then the sums.
void merge_run(const float* partials, std::size_t count, std::size_t head_dim, float* result) {
  constexpr std::size_t most = 16;
  const std::size_t size = partial_size(head_dim);
  std::size_t next = 0;
  while (next + 1 < count && partials[next * size + 1] == 0.0F) {
    ++next; // nothing was seen there
  }
  __builtin_memcpy(result, partials + next * size, size * sizeof(float));
  ++next;
  while (next < count) {
    const float* later[most];
    HWY_ALIGN float keep[most] = {};
    HWY_ALIGN float take[most] = {};
    std::size_t some = 0;
    for (; next < count && some < most; ++next) {
      const float* const own = partials + next * size;
      if (own[1] == 0.0F) {
        continue;
      }
      const float maximum = result[0] > own[0] ? result[0] : own[0];
      keep[some] = result[0] - maximum;
      take[some] = own[0] - maximum;
      result[0] = maximum;
      later[some++] = own;
    }
    for (std::size_t i = 0; i < most; i += lanes) {
      hn::Store(exponential(hn::Load(float_tag(), keep + i)), float_tag(), keep + i);
      hn::Store(exponential(hn::Load(float_tag(), take + i)), float_tag(), take + i);
    }
    for (std::size_t i = 0; i < some; ++i) {
      result[1] = __builtin_fmaf(result[1], keep[i], later[i][1] * take[i]);
    }
    for (std::size_t d = 2; d < size; d += lanes) {
      vfloat sum = hn::LoadU(float_tag(), result + d);
      for (std::size_t i = 0; i < some; ++i) {
        const vfloat part = hn::Mul(hn::LoadU(float_tag(), later[i] + d), constant(take[i]));
        sum = fused(sum, constant(keep[i]), part);
      }
      hn::StoreU(sum, float_tag(), result + d);
    }
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
  table.merge_run = &merge_run;
  table.normalise = &normalise;
}

} // namespace godwit::ops::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
