// Ops on single rows: quantise, norm, gate, rotate, store. Compiled once for each target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/cpu/simd/rows.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include "kernels/ops/cpu/kernels.hpp"
#include "kernels/ops/cpu/simd/lanes-inl.hpp"
#include "kernels/quant/half.hpp"

HWY_BEFORE_NAMESPACE();
namespace godwit::ops::cpu::HWY_NAMESPACE {
namespace {

/// The greatest magnitude of 32 floats as its bits. As integers the bits of magnitudes are ordered like the
/// numbers, with NaN above all, so that a NaN is never lost.
HWY_INLINE std::int32_t greatest_bits(const float* x) {
  vint best = hn::Zero(int_tag());
  for (std::size_t i = 0; i < block_inputs; i += lanes) {
    best = hn::Max(best, hn::BitCast(int_tag(), hn::Abs(hn::LoadU(float_tag(), x + i))));
  }
  return hn::GetLane(hn::MaxOfLanes(int_tag(), best));
}

HWY_INLINE float float_of(std::int32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

constexpr std::int32_t infinity_bits = 0x7F800000;
/// Magnitudes below 2^-100 are too small to divide by.
constexpr std::int32_t least_bits = (127 - 100) << 23;

/// One block.
HWY_INLINE void quantise_one(const float* x, std::int8_t* quants, block_info& info) {
  const hn::Rebind<std::int8_t, float_tag> bytes;
  const std::int32_t bits = greatest_bits(x);
  const float magnitude = float_of(bits);
  // Too small to divide by is zero; what is not finite spoils its block and is not rounded.
  if (bits >= infinity_bits || bits < least_bits) {
    __builtin_memset(quants, 0, block_inputs);
    info = {};
    info.scale = bits >= infinity_bits ? __builtin_nanf("") : 0.0F;
    info.scaled_sum = info.scale;
    return;
  }
  const vfloat inverse = constant(127.0F / magnitude);
  vint sums[2] = {hn::Zero(int_tag()), hn::Zero(int_tag())};
  for (std::size_t i = 0; i < block_inputs; i += lanes) {
    const vint q = nearest(hn::Mul(hn::LoadU(float_tag(), x + i), inverse));
    hn::StoreU(hn::DemoteTo(bytes, q), bytes, quants + i);
    sums[i / 16] = hn::Add(sums[i / 16], q);
  }
  const std::int32_t half = hn::GetLane(hn::SumOfLanes(int_tag(), sums[0]));
  const std::int32_t total = half + hn::GetLane(hn::SumOfLanes(int_tag(), sums[1]));
  info.scale = magnitude / 127.0F;
  info.scaled_sum = info.scale * static_cast<float>(total);
  info.minus_8 = -8 * total;
  info.minus_128 = -128 * total;
  info.minus_128_of_half = -128 * half;
}

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL

/// The greatest lane of each of four vectors.
HWY_INLINE __m128i greatest_of_four(const __m512i* v) {
  __m128i best[4];
  for (std::size_t i = 0; i < 4; ++i) {
    const __m256i half = _mm256_max_epi32(_mm512_castsi512_si256(v[i]), _mm512_extracti64x4_epi64(v[i], 1));
    best[i] = _mm_max_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  }
  const __m128i ab =
    _mm_max_epi32(_mm_unpacklo_epi32(best[0], best[1]), _mm_unpackhi_epi32(best[0], best[1]));
  const __m128i cd =
    _mm_max_epi32(_mm_unpacklo_epi32(best[2], best[3]), _mm_unpackhi_epi32(best[2], best[3]));
  return _mm_max_epi32(_mm_unpacklo_epi64(ab, cd), _mm_unpackhi_epi64(ab, cd));
}

/// Four 16-byte vectors as one.
HWY_INLINE __m512i joined(const __m128i* v) {
  const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(v[0]), v[1], 1);
  const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(v[2]), v[3], 1);
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/// Sums of four neighbouring bytes.
HWY_INLINE __m512i sums_of_fours(__m512i quants) {
  return _mm512_madd_epi16(_mm512_maddubs_epi16(_mm512_set1_epi8(1), quants), _mm512_set1_epi16(1));
}

/// Four blocks, none of which waits for another. The same operations as for one.
HWY_INLINE void quantise_four(
  const float* const* x, std::int8_t* const* quants, block_info* const* blocks, std::size_t) {
  __m512i magnitudes[4];
  for (std::size_t b = 0; b < 4; ++b) {
    const __m512i sign = _mm512_set1_epi32(0x7FFFFFFF);
    magnitudes[b] = _mm512_max_epi32(_mm512_and_si512(_mm512_loadu_si512(x[b]), sign),
      _mm512_and_si512(_mm512_loadu_si512(x[b] + 16), sign));
  }
  const __m128i bits = greatest_of_four(magnitudes);
  const __m128i unusual = _mm_or_si128(_mm_cmpgt_epi32(_mm_set1_epi32(least_bits), bits),
    _mm_cmpgt_epi32(bits, _mm_set1_epi32(infinity_bits - 1)));
  if (_mm_movemask_epi8(unusual) != 0) {
    for (std::size_t b = 0; b < 4; ++b) {
      quantise_one(x[b], quants[b], *blocks[b]);
    }
    return;
  }
  const __m128 greatest = _mm_castsi128_ps(bits);
  const __m128 inverses = _mm_div_ps(_mm_set1_ps(127.0F), greatest);
  const __m128 scales = _mm_div_ps(greatest, _mm_set1_ps(127.0F));
  const __m512 inverse_of = _mm512_castps128_ps512(inverses);

  __m128i halves[2][4];
  for (std::size_t b = 0; b < 4; ++b) {
    const vfloat inverse{_mm512_permutexvar_ps(_mm512_set1_epi32(static_cast<int>(b)), inverse_of)};
    for (std::size_t i = 0; i < 2; ++i) {
      const vint q = nearest(hn::Mul(hn::LoadU(float_tag(), x[b] + i * 16), inverse));
      halves[i][b] = _mm512_cvtepi32_epi8(q.raw);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(quants[b] + i * 16), halves[i][b]);
    }
  }
  // In each quarter of a vector: [first half, second half, first half, second half] of a block's sum.
  const __m512i first = sums_of_fours(joined(halves[0]));
  const __m512i second = sums_of_fours(joined(halves[1]));
  const __m512i pairs =
    _mm512_add_epi32(_mm512_unpacklo_epi32(first, second), _mm512_unpackhi_epi32(first, second));
  const __m512i sums = _mm512_add_epi32(pairs, _mm512_shuffle_epi32(pairs, _MM_PERM_BADC));
  const __m512i totals = _mm512_add_epi32(sums, _mm512_shuffle_epi32(sums, _MM_PERM_CDAB));

  // Scale, scaled sum, -8 and -128 sums of a block side by side, as block_info has them.
  const __m512i quarter = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
  const __m512 scale = _mm512_permutexvar_ps(quarter, _mm512_castps128_ps512(scales));
  const __m512i shifts = _mm512_setr_epi32(0, 0, 3, 7, 0, 0, 3, 7, 0, 0, 3, 7, 0, 0, 3, 7);
  const __m512i negated = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_sllv_epi32(totals, shifts));
  const __m512i scaled = _mm512_castps_si512(_mm512_mul_ps(scale, _mm512_cvtepi32_ps(totals)));
  const __m512i infos =
    _mm512_mask_mov_epi32(_mm512_mask_mov_epi32(negated, 0x2222, scaled), 0x1111, _mm512_castps_si512(scale));
  const __m512i of_half = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(sums, 7));
  alignas(64) std::int32_t firsts[16];
  _mm512_store_si512(firsts, of_half);
  static_assert(sizeof(block_info) == 20);
  static_assert(offsetof(block_info, scaled_sum) == 4 && offsetof(block_info, minus_8) == 8
                && offsetof(block_info, minus_128) == 12 && offsetof(block_info, minus_128_of_half) == 16);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(blocks[0]), _mm512_castsi512_si128(infos));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(blocks[1]), _mm512_extracti32x4_epi32(infos, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(blocks[2]), _mm512_extracti32x4_epi32(infos, 2));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(blocks[3]), _mm512_extracti32x4_epi32(infos, 3));
  for (std::size_t b = 0; b < 4; ++b) {
    blocks[b]->minus_128_of_half = firsts[b * 4];
  }
}

#else

/// The first `count` of four blocks.
HWY_INLINE void quantise_four(
  const float* const* x, std::int8_t* const* quants, block_info* const* blocks, std::size_t count) {
  for (std::size_t b = 0; b < count; ++b) {
    quantise_one(x[b], quants[b], *blocks[b]);
  }
}

#endif

void quantise_blocks(const quantise_from& from, const quantise_to& to, std::size_t count) {
  std::size_t b = 0;
  for (; b + 2 <= count; b += 4) {
    const float* x[4];
    std::int8_t* quants[4];
    block_info* blocks[4];
    for (std::size_t i = 0; i < 4; ++i) {
      // What is missing of four is the last one again.
      const std::size_t at = b + i < count ? b + i : count - 1;
      x[i] = from.data + at * from.stride;
      quants[i] = to.quants + at * to.quant_stride;
      blocks[i] = to.blocks + at * to.block_stride;
    }
    quantise_four(x, quants, blocks, count - b < 4 ? count - b : 4);
  }
  if (b < count) {
    quantise_one(
      from.data + b * from.stride, to.quants + b * to.quant_stride, to.blocks[b * to.block_stride]);
  }
}

void quantise(const float* x, std::size_t count, std::int8_t* quants, block_info* blocks) {
  quantise_blocks({x, block_inputs}, {quants, block_inputs, blocks, 1}, count / block_inputs);
}

/// The last `count` < 16 elements, filled up with zeros.
HWY_INLINE wide load_tail(const float* from, std::size_t count) {
  float lane[16] = {};
  __builtin_memcpy(lane, from, count * sizeof(float));
  return load(lane);
}

void norm(const float* x, const float* weight, std::size_t count, float epsilon, float* y) {
  const std::size_t whole = count / 16 * 16;
  wide squares = all(0.0F);
  for (std::size_t i = 0; i < count; i += 16) {
    const wide v = i < whole ? load(x + i) : load_tail(x + i, count - whole);
    for (std::size_t p = 0; p < parts; ++p) {
      squares.part[p] = fused(v.part[p], v.part[p], squares.part[p]);
    }
  }
  const float mean = sum(squares) / static_cast<float>(count);
  const float inverse = 1.0F / __builtin_sqrtf(mean + epsilon);
  for (std::size_t i = 0; i < whole; i += lanes) {
    const vfloat scaled = hn::Mul(hn::LoadU(float_tag(), x + i), constant(inverse));
    hn::StoreU(hn::Mul(scaled, hn::LoadU(float_tag(), weight + i)), float_tag(), y + i);
  }
  for (std::size_t i = whole; i < count; ++i) {
    y[i] = (x[i] * inverse) * weight[i];
  }
}

HWY_INLINE vfloat gated(vfloat a, vfloat b) {
  // Beyond 88 the exponential would overflow; a / (1 + e^88) is as good as zero.
  const vfloat e = exponential(hn::Min(hn::Neg(a), constant(88.0F)));
  return hn::Mul(hn::Div(a, hn::Add(constant(1.0F), e)), b);
}

void gate(const float* a, const float* b, std::size_t count, float* y) {
  const std::size_t whole = count / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes) {
    hn::StoreU(gated(hn::LoadU(float_tag(), a + i), hn::LoadU(float_tag(), b + i)), float_tag(), y + i);
  }
  for (std::size_t i = whole; i < count; ++i) {
    y[i] = hn::GetLane(gated(constant(a[i]), constant(b[i])));
  }
}

void rotate(float* x, const float* turns, std::size_t count) {
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  // Of each pair the first sine is negated.
  const hn::Repartition<std::uint64_t, float_tag> pairs;
  const vfloat signs = hn::BitCast(float_tag(), hn::Set(pairs, std::uint64_t{0x80000000}));
  for (; i + lanes <= count; i += lanes) {
    const vfloat both = hn::LoadU(float_tag(), x + i);
    const vfloat turn = hn::LoadU(float_tag(), turns + i);
    const vfloat other = hn::Mul(hn::Shuffle2301(both), hn::Xor(hn::DupOdd(turn), signs));
    hn::StoreU(fused(both, hn::DupEven(turn), other), float_tag(), x + i);
  }
#endif
  for (; i < count; i += 2) {
    const float x0 = x[i];
    const float x1 = x[i + 1];
    const float cosine = turns[i];
    const float sine = turns[i + 1];
    x[i] = __builtin_fmaf(x0, cosine, x1 * -sine);
    x[i + 1] = __builtin_fmaf(x1, cosine, x0 * sine);
  }
}

void rotate_halves(float* x, const float* turns, std::size_t count) {
  float* const second = x + count / 2;
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; i + lanes <= count / 2; i += lanes) {
    const vfloat low = hn::LoadU(float_tag(), turns + 2 * i);
    const vfloat high = hn::LoadU(float_tag(), turns + 2 * i + lanes);
    const vfloat cosine = hn::ConcatEven(float_tag(), high, low);
    const vfloat sine = hn::ConcatOdd(float_tag(), high, low);
    const vfloat x0 = hn::LoadU(float_tag(), x + i);
    const vfloat x1 = hn::LoadU(float_tag(), second + i);
    hn::StoreU(fused(x0, cosine, hn::Mul(x1, hn::Neg(sine))), float_tag(), x + i);
    hn::StoreU(fused(x1, cosine, hn::Mul(x0, sine)), float_tag(), second + i);
  }
#endif
  for (; i < count / 2; ++i) {
    const float x0 = x[i];
    const float x1 = second[i];
    const float cosine = turns[2 * i];
    const float sine = turns[2 * i + 1];
    x[i] = __builtin_fmaf(x0, cosine, x1 * -sine);
    second[i] = __builtin_fmaf(x1, cosine, x0 * sine);
  }
}

/// Rounds to half precision, ties to even; magnitudes beyond it become the greatest half.
HWY_INLINE void to_halves(const float* from, std::uint16_t* to) {
  const vfloat limit = constant(65504.0F);
  const vfloat x = hn::Max(hn::Min(hn::LoadU(float_tag(), from), limit), hn::Neg(limit));
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  const hn::Rebind<hwy::float16_t, float_tag> halves;
  const hn::Rebind<std::uint16_t, float_tag> bits;
  hn::StoreU(hn::BitCast(bits, hn::DemoteTo(halves, x)), bits, to);
#else
  HWY_ALIGN float values[lanes];
  hn::Store(x, float_tag(), values);
  for (std::size_t i = 0; i < lanes; ++i) {
    to[i] = float_to_half(values[i]);
  }
#endif
}

/// Rounds to the upper half of a single, ties to even; magnitudes beyond it become the greatest one.
HWY_INLINE void to_bfloats(const float* from, std::uint16_t* to) {
  const hn::Rebind<std::uint32_t, float_tag> words;
  const vfloat limit = constant(0x1.FEp127F);
  const vfloat x = hn::Max(hn::Min(hn::LoadU(float_tag(), from), limit), hn::Neg(limit));
  const auto bits = hn::BitCast(words, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(words, 0x7FFF)), odd));
  HWY_ALIGN std::uint32_t values[lanes];
  hn::Store(rounded, words, values);
  for (std::size_t i = 0; i < lanes; ++i) {
    to[i] = static_cast<std::uint16_t>(values[i]);
  }
}

/// Integers up to 127 in magnitude by one scale. What is not finite makes the scale no number.
/// @param count a multiple of 16
/// @returns the scale
HWY_INLINE kv_scale to_bytes(const float* from, std::size_t count, std::int8_t* to) {
  constexpr std::int32_t infinity = 0x7F800000;
  constexpr kv_scale no_number = 0x7E00;
  vint best = hn::Zero(int_tag());
  for (std::size_t i = 0; i < count; i += lanes) {
    best = hn::Max(best, hn::BitCast(int_tag(), hn::Abs(hn::LoadU(float_tag(), from + i))));
  }
  const std::int32_t bits = hn::GetLane(hn::MaxOfLanes(int_tag(), best));
  const float wanted = float_of(bits) / 127.0F;
  const kv_scale scale = bits >= infinity ? no_number : float_to_half(wanted < 65504.0F ? wanted : 65504.0F);
  if (bits >= infinity || scale == 0) {
    __builtin_memset(to, 0, count);
    return scale;
  }
  const hn::Rebind<std::int8_t, float_tag> bytes;
  const vint most = hn::Set(int_tag(), 127);
  // By the scale as it is stored, so that its rounding is no error of its own.
  const vfloat inverse = constant(1.0F / half_to_float(scale));
  const vfloat limit = constant(0x1p20F); // of what can be rounded; far beyond what is kept
  for (std::size_t i = 0; i < count; i += lanes) {
    const vfloat scaled = hn::Mul(hn::LoadU(float_tag(), from + i), inverse);
    const vint q = nearest(hn::Max(hn::Min(scaled, limit), hn::Neg(limit)));
    hn::StoreU(hn::DemoteTo(bytes, hn::Max(hn::Min(q, most), hn::Neg(most))), bytes, to + i);
  }
  return scale;
}

/// @param round from `lanes` floats to elements
template <kv_type Type, class Round>
HWY_INLINE void store_rounded(
  Round&& round, const float* k, const float* v, std::size_t head_dim, std::byte* page, std::size_t slot) {
  auto* const elements = reinterpret_cast<std::uint16_t*>(page);
  auto* const values =
    reinterpret_cast<std::uint16_t*>(page + kv_places<Type>::values(head_dim)) + slot * head_dim;
  for (std::size_t d = 0; d < head_dim; d += lanes) {
    std::uint16_t keys[lanes];
    round(k + d, keys);
    for (std::size_t i = 0; i < lanes; ++i) {
      elements[(d + i) * page_tokens + slot] = keys[i];
    }
    round(v + d, values + d);
  }
}

void store_halves(const float* k, const float* v, std::size_t head_dim, std::byte* page, std::size_t slot) {
  store_rounded<kv_type::f16>(
    [](const float* from, std::uint16_t* to) HWY_ATTR { to_halves(from, to); }, k, v, head_dim, page, slot);
}

void store_bfloats(const float* k, const float* v, std::size_t head_dim, std::byte* page, std::size_t slot) {
  store_rounded<kv_type::bf16>(
    [](const float* from, std::uint16_t* to) HWY_ATTR { to_bfloats(from, to); }, k, v, head_dim, page, slot);
}

void store_bytes(const float* k, const float* v, std::size_t head_dim, std::byte* page, std::size_t slot) {
  using places = kv_places<kv_type::int8>;
  auto* const elements = reinterpret_cast<std::int8_t*>(page);
  auto* const values = reinterpret_cast<std::int8_t*>(page + places::values(head_dim)) + slot * head_dim;
  // The row of values is scratch memory for the key until it is written itself.
  reinterpret_cast<kv_scale*>(page + places::key_scales(head_dim))[slot] = to_bytes(k, head_dim, values);
  for (std::size_t d = 0; d < head_dim; ++d) {
    elements[d * page_tokens + slot] = values[d];
  }
  reinterpret_cast<kv_scale*>(page + places::value_scales(head_dim))[slot] = to_bytes(v, head_dim, values);
}

} // namespace

void fill_rows(kernel_table& table) {
  table.quantise = &quantise;
  table.quantise_blocks = &quantise_blocks;
  table.norm = &norm;
  table.gate = &gate;
  table.rotate = &rotate;
  table.rotate_halves = &rotate_halves;
  table.halves.store = &store_halves;
  table.bfloats.store = &store_bfloats;
  table.bytes.store = &store_bytes;
}

} // namespace godwit::ops::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
