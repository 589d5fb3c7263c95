#include "kernels/ops/reference/loops.hpp"

#include "kernels/memory/kv_layout.hpp"

#include <cstring>

namespace godwit::ops::reference {

namespace {

// Sums side by side as vectors of the compiler's: of its own accord it would vectorise over the inputs.
using four [[gnu::vector_size(32)]] = double;
using four_floats [[gnu::vector_size(16)]] = float;
inline constexpr std::size_t vectors = row_group / 4;
static_assert(row_group % 4 == 0 && page_tokens == row_group);

// By reference: as values they would have no calling convention without wide registers.
[[gnu::always_inline]] inline void load(const double* from, four& to) {
  std::memcpy(&to, from, sizeof to);
}

[[gnu::always_inline]] inline void load(const float* from, four& to) {
  four_floats narrow;
  std::memcpy(&narrow, from, sizeof narrow);
  to = __builtin_convertvector(narrow, four);
}

/// `Element` is double for inputs, float for keys.
template <class Element>
[[gnu::always_inline]] inline void multiply_loop(
  const double* weights, const Element* in, std::size_t width, double* sums) {
  four own[vectors] = {};
  for (std::size_t i = 0; i < width; ++i) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < vectors; ++v) {
      four x;
      load(in + i * row_group + v * 4, x);
      own[v] += weights[i] * x;
    }
  }
  for (std::size_t v = 0; v < vectors; ++v) {
    std::memcpy(sums + v * 4, &own[v], sizeof(four));
  }
}

[[gnu::always_inline]] inline void add_loop(
  const double* weights, const float* values, std::size_t count, std::size_t head_dim, double* sums) {
  const std::size_t whole = head_dim / 4 * 4;
  for (std::size_t d = 0; d < whole; d += 4) {
    four own;
    load(sums + d, own);
    for (std::size_t j = 0; j < count; ++j) {
      four v;
      load(values + j * head_dim + d, v);
      own += weights[j] * v;
    }
    std::memcpy(sums + d, &own, sizeof own);
  }
  for (std::size_t d = whole; d < head_dim; ++d) {
    for (std::size_t j = 0; j < count; ++j) {
      sums[d] += weights[j] * static_cast<double>(values[j * head_dim + d]);
    }
  }
}

} // namespace

// The same source once for each register width.
#define GODWIT_LOOPS(NAME, ATTRIBUTE)                                                                        \
  namespace NAME {                                                                                           \
  ATTRIBUTE static void multiply(const double* w, const double* in, std::size_t width, double* sums) {       \
    multiply_loop(w, in, width, sums);                                                                       \
  }                                                                                                          \
  ATTRIBUTE static void score(const double* q, const float* keys, std::size_t head_dim, double* scores) {    \
    multiply_loop(q, keys, head_dim, scores);                                                                \
  }                                                                                                          \
  ATTRIBUTE static void add(                                                                                 \
    const double* w, const float* values, std::size_t count, std::size_t head_dim, double* sums) {           \
    add_loop(w, values, count, head_dim, sums);                                                              \
  }                                                                                                          \
  constexpr loops table{&multiply, &score, &add};                                                            \
  }

GODWIT_LOOPS(plain, )
#if defined(__x86_64__)
GODWIT_LOOPS(avx2, [[gnu::target("avx2")]])
#endif

loops loops_here() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) {
    return avx2::table;
  }
#endif
  return plain::table;
}

} // namespace godwit::ops::reference
