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

/// Eight partial sums, of every eighth weight.
class block_sum {
 public:
  HWY_INLINE block_sum() {
    for (std::size_t p = 0; p < parts; ++p) {
      sums_[p] = hn::Zero(double_tag());
    }
  }
  /// Eight weights.
  HWY_INLINE void add(const float* weights) {
    const hn::Rebind<float, double_tag> narrow;
    for (std::size_t p = 0; p < parts; ++p) {
      const auto some = hn::LoadU(narrow, weights + p * double_lanes);
      sums_[p] = hn::Add(sums_[p], hn::PromoteTo(double_tag(), some));
    }
  }
  /// Eight weights of which those below a limit count as zero.
  HWY_INLINE void add_from(const float* weights, float least) {
    const hn::Rebind<float, double_tag> narrow;
    for (std::size_t p = 0; p < parts; ++p) {
      const auto some = hn::LoadU(narrow, weights + p * double_lanes);
      const auto kept = hn::IfThenZeroElse(hn::Lt(some, hn::Set(narrow, least)), some);
      sums_[p] = hn::Add(sums_[p], hn::PromoteTo(double_tag(), kept));
    }
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
  block_sum sum;
  for (std::size_t i = 0; i < count; i += 8) {
    sum.add(weights + i);
  }
  return sum.total();
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

/// Calls `job(block, from, count)` for blocks of which some weight may be at least `least`; the last one is
/// filled up with zeros to a multiple of 16.
template <class Job>
HWY_INLINE void in_blocks_from(
  const float* weights, std::size_t count, const float* greatest, float least, Job job) {
  for (std::size_t start = 0; start < count; start += block) {
    if (greatest[start / block] < least) {
      continue;
    }
    const std::size_t size = count - start < block ? count - start : block;
    const std::size_t whole = (size + 15) / 16 * 16;
    if (whole == size) {
      job(start / block, weights + start, whole);
      continue;
    }
    float filled[block] = {};
    __builtin_memcpy(filled, weights + start, size * sizeof(float));
    job(start / block, filled, whole);
  }
}

float guess_all(const float* weights, std::size_t count, const float* greatest, float least) {
  // Four sums at a time, so that an addition need not wait for the last one.
  vfloat a = hn::Zero(float_tag());
  vfloat b = a;
  vfloat c = a;
  vfloat d = a;
  const vfloat limit = constant(least);
  const auto counted = [&](const float* from) HWY_ATTR {
    const vfloat w = hn::LoadU(float_tag(), from);
    return hn::IfThenZeroElse(hn::Lt(w, limit), w);
  };
  in_blocks_from(
    weights, count, greatest, least, [&](std::size_t, const float* from, std::size_t size) HWY_ATTR {
      std::size_t i = 0;
      for (; i + 4 * lanes <= size; i += 4 * lanes) {
        a = hn::Add(a, counted(from + i));
        b = hn::Add(b, counted(from + i + lanes));
        c = hn::Add(c, counted(from + i + 2 * lanes));
        d = hn::Add(d, counted(from + i + 3 * lanes));
      }
      for (; i < size; i += lanes) {
        a = hn::Add(a, counted(from + i));
      }
    });
  HWY_ALIGN float each[lanes];
  hn::Store(hn::Add(hn::Add(a, b), hn::Add(c, d)), float_tag(), each);
  float sum = 0;
  for (std::size_t i = 0; i < lanes; ++i) {
    sum += each[i];
  }
  return sum;
}

std::size_t sums_of_all(const float* weights, std::size_t count, const float* greatest, float least,
  float above, double* from_least, double* from_above, std::uint32_t* between) {
  const std::uint32_t* const begin = between;
  for (std::size_t b = 0; b * block < count; ++b) {
    from_least[b] = 0;
    from_above[b] = 0;
  }
  in_blocks_from(
    weights, count, greatest, least, [&](std::size_t b, const float* from, std::size_t size) HWY_ATTR {
      const std::uint32_t* const first = between;
      block_sum high;
      for (std::size_t i = 0; i < size; i += 16) {
        high.add_from(from + i, above);
        high.add_from(from + i + 8, above);
        for (std::size_t at = i; at < i + 16; at += lanes) {
          const vfloat w = hn::LoadU(float_tag(), from + at);
          const auto found = hn::And(hn::Ge(w, constant(least)), hn::Lt(w, constant(above)));
          if (hn::AllFalse(float_tag(), found)) {
            continue;
          }
          for (std::size_t lane = at; lane < at + lanes; ++lane) {
            if (from[lane] >= least && from[lane] < above) {
              *between++ = static_cast<std::uint32_t>(b * block + lane);
            }
          }
        }
      }
      from_above[b] = high.total();
      from_least[b] = from_above[b];
      if (between != first) {
        block_sum low;
        for (std::size_t i = 0; i < size; i += 8) {
          low.add_from(from + i, least);
        }
        from_least[b] = low.total();
      }
    });
  return static_cast<std::size_t>(between - begin);
}

} // namespace
} // namespace godwit::vocabulary::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace godwit::vocabulary {

HWY_EXPORT(tame_all);
HWY_EXPORT(weigh_all);
HWY_EXPORT(guess_all);
HWY_EXPORT(sums_of_all);

void tame(std::span<const float> logits, float* out, float* greatest) {
  HWY_DYNAMIC_DISPATCH(tame_all)(logits.data(), logits.size(), out, greatest);
}

void weigh(std::span<const float> logits, float greatest, float temperature, float least, float* weights,
  double* sums) {
  HWY_DYNAMIC_DISPATCH(weigh_all)(logits.data(), logits.size(), greatest, temperature, least, weights, sums);
}

float guess_sum(std::span<const float> weights, std::span<const float> greatest, float least) {
  return HWY_DYNAMIC_DISPATCH(guess_all)(weights.data(), weights.size(), greatest.data(), least);
}

std::size_t sums_from(std::span<const float> weights, std::span<const float> greatest, border limits,
  double* from_least, double* from_above, std::uint32_t* between) {
  return HWY_DYNAMIC_DISPATCH(sums_of_all)(weights.data(), weights.size(), greatest.data(), limits.least,
    limits.above, from_least, from_above, between);
}

} // namespace godwit::vocabulary
#endif
