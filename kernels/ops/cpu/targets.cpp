#include "kernels/ops/cpu/kernels.hpp"

#include <hwy/highway.h>

#include <array>

// Each target's functions come from the files in simd/, which are compiled once for each target.
#define GODWIT_DECLARE_TARGET(NAME)                                                                          \
  namespace godwit::ops::cpu::NAME {                                                                         \
  void fill_rows(kernel_table& table);                                                                       \
  void fill_attention(kernel_table& table);                                                                  \
  void fill_attention_bfloats(kernel_table& table);                                                          \
  void fill_attention_bytes(kernel_table& table);                                                            \
  void fill_product(kernel_table& table);                                                                    \
  void fill_tanh(kernel_table& table);                                                                       \
  }
#define GODWIT_TARGET(NAME, ...)                                                                             \
  [] {                                                                                                       \
    kernel_table made{__VA_ARGS__};                                                                          \
    NAME::fill_rows(made);                                                                                   \
    NAME::fill_attention(made);                                                                              \
    NAME::fill_attention_bfloats(made);                                                                      \
    NAME::fill_attention_bytes(made);                                                                        \
    NAME::fill_product(made);                                                                                \
    NAME::fill_tanh(made);                                                                                   \
    return made;                                                                                             \
  }()

#if HWY_TARGETS & HWY_AVX3_DL
GODWIT_DECLARE_TARGET(N_AVX3_DL)
#endif
#if HWY_TARGETS & HWY_AVX3
GODWIT_DECLARE_TARGET(N_AVX3)
#endif
#if HWY_TARGETS & HWY_AVX2
GODWIT_DECLARE_TARGET(N_AVX2)
#endif
#if HWY_TARGETS & HWY_SSE4
GODWIT_DECLARE_TARGET(N_SSE4)
#endif
#if HWY_TARGETS & HWY_NEON
GODWIT_DECLARE_TARGET(N_NEON)
#endif
#if HWY_TARGETS & HWY_SCALAR
GODWIT_DECLARE_TARGET(N_SCALAR)
#endif

namespace godwit::ops::cpu {

std::span<const kernel_table> compiled_targets() {
  static const auto tables = std::to_array<kernel_table>({
#if HWY_TARGETS & HWY_AVX3_DL
    GODWIT_TARGET(N_AVX3_DL, "avx512vnni", "AVX-512 with VNNI", HWY_AVX3_DL),
#endif
#if HWY_TARGETS & HWY_AVX3
      GODWIT_TARGET(N_AVX3, "avx512", "AVX-512 with BW, DQ, VL", HWY_AVX3),
#endif
#if HWY_TARGETS & HWY_AVX2
      GODWIT_TARGET(N_AVX2, "avx2", "AVX2 with FMA and F16C", HWY_AVX2),
#endif
#if HWY_TARGETS & HWY_SSE4
      GODWIT_TARGET(N_SSE4, "sse4", "SSE4.2; fused multiply-adds one by one", HWY_SSE4),
#endif
#if HWY_TARGETS & HWY_NEON
      GODWIT_TARGET(N_NEON, "neon", "NEON", HWY_NEON),
#endif
#if HWY_TARGETS & HWY_SCALAR
      GODWIT_TARGET(N_SCALAR, "scalar", "no vectors", HWY_SCALAR),
#endif
  });
  return tables;
}

bool runs_here(const kernel_table& table) {
  return table.target == HWY_SCALAR || (hwy::SupportedTargets() & table.target) != 0;
}

} // namespace godwit::ops::cpu
