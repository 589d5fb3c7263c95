#include "tools/bench/int8_peak.hpp"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace godwit::bench {

namespace {

constexpr int chains = 12;

std::uint64_t run_plain(std::uint64_t repeats) {
  std::int32_t sums[chains] = {};
  std::int32_t x = 3;
  for (std::uint64_t i = 0; i < repeats; ++i) {
    asm volatile("" : "+r"(x));
    for (int& sum : sums) {
      sum += x * static_cast<std::int8_t>(x);
    }
  }
  std::uint64_t all = 0;
  for (const int sum : sums) {
    all += static_cast<std::uint64_t>(sum);
  }
  return all;
}

#if defined(__x86_64__)

std::uint64_t first_word(const void* vector) {
  std::uint64_t word;
  std::memcpy(&word, vector, sizeof word);
  return word;
}

__attribute__((target("avx512f,avx512bw,avx512vnni"))) std::uint64_t run_vnni(std::uint64_t repeats) {
  __m512i sums[chains];
  for (auto& sum : sums) {
    sum = _mm512_setzero_si512();
  }
  __m512i w = _mm512_set1_epi8(3);
  const __m512i x = _mm512_set1_epi8(1);
  for (std::uint64_t i = 0; i < repeats; ++i) {
#pragma GCC unroll 12
    for (auto& sum : sums) {
      asm volatile("" : "+v"(w)); // on a sum it would make the compiler keep all sums in memory
      sum = _mm512_dpbusd_epi32(sum, w, x);
    }
  }
  __m512i all = sums[0];
  for (const auto& sum : sums) {
    all = _mm512_xor_si512(all, sum);
  }
  return first_word(&all);
}

__attribute__((target("avx512f,avx512bw"))) std::uint64_t run_avx512(std::uint64_t repeats) {
  __m512i sums[chains];
  for (auto& sum : sums) {
    sum = _mm512_setzero_si512();
  }
  __m512i w = _mm512_set1_epi8(3);
  const __m512i x = _mm512_set1_epi8(1);
  const __m512i ones = _mm512_set1_epi16(1);
  for (std::uint64_t i = 0; i < repeats; ++i) {
#pragma GCC unroll 12
    for (auto& sum : sums) {
      asm volatile("" : "+v"(w));
      sum = _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_maddubs_epi16(w, x), ones));
    }
  }
  __m512i all = sums[0];
  for (const auto& sum : sums) {
    all = _mm512_xor_si512(all, sum);
  }
  return first_word(&all);
}

__attribute__((target("avx2"))) std::uint64_t run_avx2(std::uint64_t repeats) {
  __m256i sums[chains];
  for (auto& sum : sums) {
    sum = _mm256_setzero_si256();
  }
  __m256i w = _mm256_set1_epi8(3);
  const __m256i x = _mm256_set1_epi8(1);
  const __m256i ones = _mm256_set1_epi16(1);
  for (std::uint64_t i = 0; i < repeats; ++i) {
#pragma GCC unroll 12
    for (auto& sum : sums) {
      asm volatile("" : "+x"(w));
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), ones));
    }
  }
  __m256i all = sums[0];
  for (const auto& sum : sums) {
    all = _mm256_xor_si256(all, sum);
  }
  return first_word(&all);
}

#endif

} // namespace

int8_peak int8_peak_for(std::string_view implementation) {
#if defined(__x86_64__)
  if (implementation == "cpu:avx512vnni") {
    return {"avx512vnni", std::uint64_t{chains} * 128, &run_vnni};
  }
  if (implementation == "cpu:avx512") {
    return {"avx512", std::uint64_t{chains} * 128, &run_avx512};
  }
  if (implementation == "cpu:avx2") {
    return {"avx2", std::uint64_t{chains} * 64, &run_avx2};
  }
#endif
  static_cast<void>(implementation);
  return {"plain", std::uint64_t{chains} * 2, &run_plain};
}

} // namespace godwit::bench
