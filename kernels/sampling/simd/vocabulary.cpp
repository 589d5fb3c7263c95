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

/// Vectors that go side by side: each operation waits some cycles for the one before it, and a core looks
/// only two or three such chains ahead on its own.
inline constexpr std::size_t chains = 8;

/// exp_nonpositive of elementary.hpp, operation by operation, and 1 above 0; what is no number gets 0.
template <std::size_t Count>
HWY_INLINE void exp_nonpositive(vfloat (&x)[Count]) {
  const vfloat lowest = constant(-87.0F);
  const vfloat shift = constant(12582912.0F);
  vfloat r[Count];
  vfloat p[Count];
  vfloat power[Count];
  for (std::size_t k = 0; k < Count; ++k) {
    const auto counts = hn::Ge(x[k], lowest);
    const vfloat kept = hn::Min(hn::IfThenElse(counts, x[k], lowest), hn::Zero(float_tag()));
    const vfloat shifted = hn::Add(hn::Mul(kept, constant(1.44269504088896341F)), shift);
    const vfloat n = hn::Sub(shifted, shift);
    r[k] = hn::Sub(kept, hn::Mul(n, constant(0.693359375F)));
    r[k] = hn::Sub(r[k], hn::Mul(n, constant(-2.12194440e-4F)));
    const auto exponent = hn::Add(
      hn::Sub(hn::BitCast(int_tag(), shifted), hn::BitCast(int_tag(), shift)), hn::Set(int_tag(), 127));
    // What is multiplied by it is finite.
    power[k] = hn::IfThenElseZero(counts, hn::BitCast(float_tag(), hn::ShiftLeft<23>(exponent)));
  }
  for (std::size_t k = 0; k < Count; ++k) {
    p[k] = hn::Add(hn::Mul(constant(1.9875691500e-4F), r[k]), constant(1.3981999507e-3F));
  }
  const auto step = [&](float next) HWY_ATTR {
    for (std::size_t k = 0; k < Count; ++k) {
      p[k] = hn::Add(hn::Mul(p[k], r[k]), constant(next));
    }
  };
  step(8.3334519073e-3F);
  step(4.1665795894e-2F);
  step(1.6666665459e-1F);
  step(5.0000001201e-1F);
  for (std::size_t k = 0; k < Count; ++k) {
    p[k] = hn::Add(hn::Mul(p[k], hn::Mul(r[k], r[k])), r[k]);
  }
  for (std::size_t k = 0; k < Count; ++k) {
    x[k] = hn::Mul(hn::Add(p[k], constant(1.0F)), power[k]);
  }
}

HWY_INLINE vfloat tame_vector(vfloat x) {
  const vfloat highest = constant(__FLT_MAX__);
  const vfloat number = hn::IfThenElse(hn::Eq(x, x), x, constant(-__builtin_inff()));
  return hn::IfThenElse(hn::Lt(highest, number), highest, number);
}

/// One block. @param count a multiple of 16
HWY_INLINE float greatest_of(const float* logits, std::size_t count) {
  const vfloat lowest = constant(-__builtin_inff());
  vfloat most[4] = {lowest, lowest, lowest, lowest};
  const auto take = [&](std::size_t k, std::size_t at) HWY_ATTR {
    const vfloat x = hn::LoadU(float_tag(), logits + at);
    // False for what is no number.
    most[k] = hn::IfThenElse(hn::Lt(most[k], x), x, most[k]);
  };
  std::size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    for (std::size_t k = 0; k < 4; ++k) {
      take(k, i + k * lanes);
    }
  }
  for (; i < count; i += lanes) {
    take(0, i);
  }
  const auto greater = [](vfloat a, vfloat b) HWY_ATTR { return hn::IfThenElse(hn::Lt(a, b), b, a); };
  const vfloat each = greater(greater(most[0], most[1]), greater(most[2], most[3]));
  return hn::GetLane(hn::MaxOfLanes(float_tag(), tame_vector(each)));
}

/// Eight partial sums, of every eighth weight.
class block_sum {
 public:
  HWY_INLINE block_sum() {
    for (std::size_t p = 0; p < parts; ++p) {
      sums_[p] = hn::Zero(double_tag());
    }
  }
  /// One vector of weights, the first of which is the one numbered `at`.
  HWY_INLINE void add(vfloat weights, std::size_t at) {
    const std::size_t part = at % 8 / double_lanes;
#if HWY_TARGET == HWY_SCALAR
    sums_[part] = hn::Add(sums_[part], hn::PromoteTo(double_tag(), weights));
#else
    static_assert(lanes == 2 * double_lanes);
    const hn::Half<float_tag> half;
    sums_[part] = hn::Add(sums_[part], hn::PromoteTo(double_tag(), hn::LowerHalf(half, weights)));
    auto& next = sums_[(part + 1) % parts];
    next = hn::Add(next, hn::PromoteTo(double_tag(), hn::UpperHalf(half, weights)));
#endif
  }
  /// Their sum as a tree.
  HWY_INLINE double total() const {
    HWY_ALIGN double lane[8];
    for (std::size_t p = 0; p < parts; ++p) {
      hn::Store(sums_[p], double_tag(), lane + p * double_lanes);
    }
    for (std::size_t half = 4; half != 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) {
        lane[i] += lane[i + half];
      }
    }
    return lane[0];
  }

 private:
  vdouble sums_[parts];
};

/// `Count` vectors of a block. @tparam Divides false if the temperature is 1: what is divided by it stays the
/// same
template <std::size_t Count, bool Divides>
HWY_INLINE void weigh_vectors(
  const float* logits, const weighing& how, float* weights, std::size_t at, block_sum& sum) {
  vfloat x[Count];
  for (std::size_t k = 0; k < Count; ++k) {
    x[k] = hn::Sub(hn::LoadU(float_tag(), logits + at + k * lanes), constant(how.greatest));
    if constexpr (Divides) {
      x[k] = hn::Div(x[k], constant(how.temperature));
    }
  }
  exp_nonpositive(x);
  for (std::size_t k = 0; k < Count; ++k) {
    const vfloat kept = hn::IfThenZeroElse(hn::Lt(x[k], constant(how.least)), x[k]);
    if (weights != nullptr) {
      hn::StoreU(kept, float_tag(), weights + at + k * lanes);
    }
    sum.add(kept, at + k * lanes);
  }
}

template <bool Divides>
HWY_INLINE double weigh_block(const float* logits, std::size_t count, const weighing& how, float* weights) {
  block_sum sum;
  std::size_t i = 0;
  for (; i + chains * lanes <= count; i += chains * lanes) {
    weigh_vectors<chains, Divides>(logits, how, weights, i, sum);
  }
  for (; i < count; i += lanes) {
    weigh_vectors<1, Divides>(logits, how, weights, i, sum);
  }
  return sum.total();
}

/// One block. @param count a multiple of 16, so that it is one of 8 and of `lanes`
HWY_INLINE double weigh_block(const float* logits, std::size_t count, const weighing& how, float* weights) {
  return how.temperature == 1.0F ? weigh_block<false>(logits, count, how, weights)
                                 : weigh_block<true>(logits, count, how, weights);
}

/// Numbers in whole vectors.
struct whole_block {
  const float* from;
  std::size_t count; ///< a multiple of 16
};

/// The block that begins at `start`. The last one is copied to `room` and filled up.
HWY_INLINE whole_block block_at(
  const float* numbers, std::size_t count, std::size_t start, float filling, float (&room)[block]) {
  const std::size_t size = count - start < block ? count - start : block;
  const std::size_t whole = (size + 15) / 16 * 16;
  if (whole == size) {
    return {numbers + start, whole};
  }
  for (std::size_t i = 0; i < whole; ++i) {
    room[i] = i < size ? numbers[start + i] : filling;
  }
  return {room, whole};
}

void greatest_of_all(const float* logits, std::size_t count, float* greatest) {
  float room[block];
  for (std::size_t start = 0; start < count; start += block) {
    const auto part = block_at(logits, count, start, -__builtin_inff(), room);
    *greatest++ = greatest_of(part.from, part.count);
  }
}

/// @param weights `[count]` or none
void sum_all(const float* logits, std::size_t count, const float* most, const weighing& how, double* sums,
  float* weights) {
  float room[block];
  float out[block];
  for (std::size_t start = 0; start < count; start += block) {
    *sums = 0;
    if (most == nullptr || *most++ >= how.least) {
      const auto part = block_at(logits, count, start, -__builtin_inff(), room);
      const bool last = part.from == room;
      *sums = weigh_block(part.from, part.count, how,
        weights == nullptr ? nullptr
        : last             ? out
                           : weights + start);
      if (weights != nullptr && last) {
        __builtin_memcpy(weights + start, out, (count - start) * sizeof(float));
      }
    }
    ++sums;
  }
}

/// About exp(x) for x <= 0; what is no number gets 0.
template <std::size_t Count>
HWY_INLINE void estimate_exp(vfloat (&x)[Count]) {
#if HWY_NATIVE_FMA
  // 2^n 2^r. Since operations are fused r has no error but that of the constant. The polynomial is 2^r to
  // 8e-8 (minimax).
  const vfloat shift = constant(12582912.0F);
  const vfloat log2_of_e = constant(1.44269504088896341F);
  vfloat shifted[Count];
  vfloat r[Count];
  vfloat p[Count];
  for (std::size_t k = 0; k < Count; ++k) {
    shifted[k] = hn::MulAdd(x[k], log2_of_e, shift);
    r[k] = hn::MulSub(x[k], log2_of_e, hn::Sub(shifted[k], shift));
    p[k] = hn::MulAdd(constant(0x1.5c08e6p-10F), r[k], constant(0x1.3d0c52p-7F));
  }
  const auto step = [&](float next) HWY_ATTR {
    for (std::size_t k = 0; k < Count; ++k) {
      p[k] = hn::MulAdd(p[k], r[k], constant(next));
    }
  };
  step(0x1.c6b6e4p-5F);
  step(0x1.ebf918p-3F);
  step(0x1.62e428p-1F);
  step(0x1.000002p+0F);
  for (std::size_t k = 0; k < Count; ++k) {
    const auto power = hn::ShiftLeft<23>(hn::BitCast(int_tag(), shifted[k]));
    const auto scaled = hn::BitCast(float_tag(), hn::Add(hn::BitCast(int_tag(), p[k]), power));
    x[k] = hn::IfThenElseZero(hn::Ge(x[k], constant(-87.0F)), scaled);
  }
#else
  exp_nonpositive(x);
#endif
}

/// `Count` vectors, a power of two.
template <std::size_t Count, bool Divides>
HWY_INLINE void estimate_vectors(
  const float* logits, const weighing& how, float inverse, float* weights, block_sum& sum) {
  vfloat x[Count];
  for (std::size_t k = 0; k < Count; ++k) {
    x[k] = hn::Sub(hn::LoadU(float_tag(), logits + k * lanes), constant(how.greatest));
    if constexpr (Divides) {
      // The quotient to half a unit in the last place, or a little more.
      const vfloat rough = hn::Mul(x[k], constant(inverse));
      const vfloat rest = hn::NegMulAdd(rough, constant(how.temperature), x[k]);
      x[k] = hn::MulAdd(rest, constant(inverse), rough);
    }
  }
  estimate_exp(x);
  for (std::size_t k = 0; k < Count; ++k) {
    hn::StoreU(x[k], float_tag(), weights + k * lanes);
  }
  for (std::size_t half = Count / 2; half != 0; half /= 2) {
    for (std::size_t k = 0; k < half; ++k) {
      x[k] = hn::Add(x[k], x[k + half]);
    }
  }
  sum.add(x[0], 0);
}

template <bool Divides>
HWY_INLINE double estimate_blocks(
  const float* logits, std::size_t count, const weighing& how, float* weights) {
  const float inverse = 1.0F / how.temperature;
  block_sum sum;
  float room[block];
  float out[block];
  for (std::size_t start = 0; start < count; start += block) {
    const auto part = block_at(logits, count, start, -__builtin_inff(), room);
    const bool last = part.from == room;
    float* const to = last ? out : weights + start;
    std::size_t i = 0;
    for (; i + chains * lanes <= part.count; i += chains * lanes) {
      estimate_vectors<chains, Divides>(part.from + i, how, inverse, to + i, sum);
    }
    for (; i < part.count; i += lanes) {
      estimate_vectors<1, Divides>(part.from + i, how, inverse, to + i, sum);
    }
    if (last) {
      __builtin_memcpy(weights + start, out, (count - start) * sizeof(float));
    }
  }
  return sum.total();
}

double estimate_all(const float* logits, std::size_t count, const weighing& how, float* weights) {
  return how.temperature == 1.0F ? estimate_blocks<false>(logits, count, how, weights)
                                 : estimate_blocks<true>(logits, count, how, weights);
}

/// A bit for each of a block's numbers.
using block_bits = std::uint64_t[block / 64];

/// Sets the bits of the vector that begins at `at`.
HWY_INLINE void mark(hn::Mask<float_tag> is, std::size_t at, block_bits& bits) {
#if HWY_TARGET <= HWY_AVX3
  bits[at / 64] |= std::uint64_t{is.raw} << at % 64;
#else
  HWY_ALIGN std::uint8_t bytes[8] = {};
  hn::StoreMaskBits(float_tag(), is, bytes);
  bits[at / 64] |= (std::uint64_t{bytes[0]} | std::uint64_t{bytes[1]} << 8) << at % 64;
#endif
}

/// Writes the places of set bits, from `start` on. @returns the end
HWY_INLINE std::uint32_t* write_places(const block_bits& bits, std::size_t start, std::uint32_t* to) {
  for (std::size_t i = 0; i < block; i += 64) {
    for (std::uint64_t left = bits[i / 64]; left != 0; left &= left - 1) {
      *to++ = static_cast<std::uint32_t>(start + i + static_cast<std::size_t>(__builtin_ctzll(left)));
    }
  }
  return to;
}

std::size_t find_all(
  const float* numbers, std::size_t count, const float* most, border limits, std::uint32_t* found) {
  const vfloat least = constant(limits.least);
  const vfloat above = constant(limits.above);
  std::uint32_t* const begin = found;
  float room[block];
  for (std::size_t start = 0; start < count; start += block) {
    if (*most++ < limits.least) {
      continue;
    }
    const auto part = block_at(numbers, count, start, -__builtin_inff(), room);
    block_bits bits = {};
    for (std::size_t i = 0; i < part.count; i += lanes) {
      const vfloat x = hn::LoadU(float_tag(), part.from + i);
      mark(hn::AndNot(hn::Ge(x, above), hn::Ge(x, least)), i, bits);
    }
    found = write_places(bits, start, found);
  }
  return static_cast<std::size_t>(found - begin);
}

/// Keeps a compiler from storing what is pressed together by one instruction, which takes ten times as long
/// as two.
template <class Vector>
HWY_INLINE Vector apart(Vector v) {
#if HWY_TARGET == HWY_AVX3
  asm("" : "+v"(v.raw));
#endif
  return v;
}

std::size_t gather_all(const float* weights, std::size_t count, const float* most, float least,
  const float* values, std::uint64_t* bits, float* kept) {
  const vfloat limit = constant(least);
  float* const begin = kept;
  float room[block];
  float value_room[block];
  for (std::size_t start = 0; start < count; start += block, bits += block / 64) {
    block_bits own = {};
    if (*most++ >= least) {
      const auto part = block_at(weights, count, start, 0, room);
      const auto from = block_at(values, count, start, 0, value_room);
      for (std::size_t i = 0; i < part.count; i += lanes) {
        const auto is = hn::Ge(hn::LoadU(float_tag(), part.from + i), limit);
        mark(is, i, own);
        // All lanes are written; those behind the last that is kept again, with the next ones.
        const auto value = hn::LoadU(float_tag(), from.from + i);
        hn::StoreU(apart(hn::Compress(value, is)), float_tag(), kept);
        kept += hn::CountTrue(float_tag(), is);
      }
    }
    __builtin_memcpy(bits, own, sizeof own);
  }
  return static_cast<std::size_t>(kept - begin);
}

float guess_all(const float* weights, std::size_t count, const float* most, float least) {
  // Four sums at a time, so that an addition need not wait for the last one.
  vfloat sums[4] = {
    hn::Zero(float_tag()), hn::Zero(float_tag()), hn::Zero(float_tag()), hn::Zero(float_tag())};
  const vfloat limit = constant(least);
  const auto take = [&](std::size_t k, const float* from) HWY_ATTR {
    const vfloat w = hn::LoadU(float_tag(), from);
    sums[k] = hn::Add(sums[k], hn::IfThenZeroElse(hn::Lt(w, limit), w));
  };
  float room[block];
  for (std::size_t start = 0; start < count; start += block) {
    if (*most++ < least) {
      continue;
    }
    const auto part = block_at(weights, count, start, 0, room);
    std::size_t i = 0;
    for (; i + 4 * lanes <= part.count; i += 4 * lanes) {
      for (std::size_t k = 0; k < 4; ++k) {
        take(k, part.from + i + k * lanes);
      }
    }
    for (; i < part.count; i += lanes) {
      take(0, part.from + i);
    }
  }
  HWY_ALIGN float each[lanes];
  hn::Store(hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3])), float_tag(), each);
  float sum = 0;
  for (std::size_t i = 0; i < lanes; ++i) {
    sum += each[i];
  }
  return sum;
}

/// The sum of a block's weights that are not below a limit.
HWY_INLINE double sum_from(whole_block part, float least) {
  block_sum sum;
  for (std::size_t i = 0; i < part.count; i += lanes) {
    const vfloat w = hn::LoadU(float_tag(), part.from + i);
    sum.add(hn::IfThenElseZero(hn::Ge(w, constant(least)), w), i);
  }
  return sum.total();
}

double sum_of_block(const float* weights, std::size_t count, float least) {
  float room[block];
  return sum_from(block_at(weights, count, 0, 0, room), least);
}

std::size_t sums_of_all(const float* weights, std::size_t count, const float* most, border limits,
  double* from_least, double* from_above, std::uint32_t* between) {
  const std::uint32_t* const begin = between;
  float room[block];
  for (std::size_t start = 0; start < count; start += block) {
    *from_least = 0;
    *from_above = 0;
    if (*most++ >= limits.least) {
      const auto part = block_at(weights, count, start, 0, room);
      const std::uint32_t* const first = between;
      block_sum high;
      block_bits bits = {};
      for (std::size_t i = 0; i < part.count; i += lanes) {
        const vfloat w = hn::LoadU(float_tag(), part.from + i);
        const auto above = hn::Ge(w, constant(limits.above));
        high.add(hn::IfThenElseZero(above, w), i);
        mark(hn::AndNot(above, hn::Ge(w, constant(limits.least))), i, bits);
      }
      between = write_places(bits, start, between);
      *from_above = high.total();
      *from_least = between == first ? *from_above : sum_from(part, limits.least);
    }
    ++from_least;
    ++from_above;
  }
  return static_cast<std::size_t>(between - begin);
}

} // namespace
} // namespace godwit::vocabulary::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace godwit::vocabulary {

HWY_EXPORT(greatest_of_all);
HWY_EXPORT(sum_all);
HWY_EXPORT(estimate_all);
HWY_EXPORT(find_all);
HWY_EXPORT(gather_all);
HWY_EXPORT(guess_all);
HWY_EXPORT(sum_of_block);
HWY_EXPORT(sums_of_all);

void greatest_of(std::span<const float> logits, float* greatest) {
  HWY_DYNAMIC_DISPATCH(greatest_of_all)(logits.data(), logits.size(), greatest);
}

void sum(std::span<const float> logits, std::span<const float> most, const weighing& how, double* sums) {
  HWY_DYNAMIC_DISPATCH(sum_all)(logits.data(), logits.size(), most.data(), how, sums, nullptr);
}

void weigh(std::span<const float> logits, const weighing& how, float* weights, double* sums) {
  HWY_DYNAMIC_DISPATCH(sum_all)(logits.data(), logits.size(), nullptr, how, sums, weights);
}

float guess_sum(std::span<const float> weights, std::span<const float> most, float least) {
  return HWY_DYNAMIC_DISPATCH(guess_all)(weights.data(), weights.size(), most.data(), least);
}

double estimate(std::span<const float> logits, const weighing& how, float* weights) {
  return HWY_DYNAMIC_DISPATCH(estimate_all)(logits.data(), logits.size(), how, weights);
}

std::size_t find(
  std::span<const float> numbers, std::span<const float> most, border limits, std::uint32_t* found) {
  return HWY_DYNAMIC_DISPATCH(find_all)(numbers.data(), numbers.size(), most.data(), limits, found);
}

std::size_t gather(std::span<const float> weights, std::span<const float> most, float least,
  std::span<const float> values, std::uint64_t* bits, float* kept) {
  return HWY_DYNAMIC_DISPATCH(gather_all)(
    weights.data(), weights.size(), most.data(), least, values.data(), bits, kept);
}

double sum_from(std::span<const float> weights, float least) {
  return HWY_DYNAMIC_DISPATCH(sum_of_block)(weights.data(), weights.size(), least);
}

std::size_t sums_from(std::span<const float> weights, std::span<const float> most, border limits,
  double* from_least, double* from_above, std::uint32_t* between) {
  return HWY_DYNAMIC_DISPATCH(sums_of_all)(
    weights.data(), weights.size(), most.data(), limits, from_least, from_above, between);
}

} // namespace godwit::vocabulary
#endif
