// Attention over pages. Compiled once for each target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/cpu/simd/attention.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include "kernels/ops/cpu/kernels.hpp"
#include "kernels/ops/cpu/simd/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace godwit::ops::cpu::HWY_NAMESPACE {
namespace {

/// Queries whose sums stand in registers at the same time.
inline constexpr std::size_t query_tile = 4;

/// Scores of 16 positions for `Queries` queries. Lanes are positions.
template <std::size_t Queries>
HWY_INLINE void score_page(const kv_element* keys, std::size_t head_dim, const attention_query* queries,
  attention_score score, float* const* scores) {
  for (std::size_t lane = 0; lane < page_tokens; lane += lanes) {
    vfloat even[Queries];
    vfloat odd[Queries];
    for (std::size_t q = 0; q < Queries; ++q) {
      even[q] = odd[q] = constant(0.0F);
    }
    for (std::size_t d = 0; d < head_dim; d += 2) {
      const vfloat first = load_halves(keys + d * page_tokens + lane);
      const vfloat second = load_halves(keys + (d + 1) * page_tokens + lane);
      for (std::size_t q = 0; q < Queries; ++q) {
        even[q] = fused(constant(queries[q].vector[d]), first, even[q]);
        odd[q] = fused(constant(queries[q].vector[d + 1]), second, odd[q]);
      }
    }
    for (std::size_t q = 0; q < Queries; ++q) {
      const vfloat made = hn::Mul(hn::Add(even[q], odd[q]), constant(score.scale));
      hn::StoreU(score.cap == 0.0F ? made : capped(made, score.cap), float_tag(), scores[q] + lane);
    }
  }
}

/// Turns the scores `[skipped, count)` into weights in place: exp(score - maximum), zero before them and up
/// to the next multiple of 16.
/// @param result `[maximum, sum]`
HWY_INLINE void soften(float* scores, std::size_t skipped, std::size_t count, float* result) {
  const std::size_t rounded = (count + 15) / 16 * 16;
  const float lowest = -__builtin_inff();
  for (std::size_t i = 0; i < skipped; ++i) {
    scores[i] = lowest;
  }
  for (std::size_t i = count; i < rounded; ++i) {
    scores[i] = lowest;
  }
  wide best = all(lowest);
  for (std::size_t i = 0; i < rounded; i += 16) {
    const wide s = load(scores + i);
    for (std::size_t p = 0; p < parts; ++p) {
      best.part[p] = hn::Max(s.part[p], best.part[p]);
    }
  }
  const float maximum = greatest(best);
  wide total = all(0.0F);
  for (std::size_t i = 0; i < rounded; i += 16) {
    wide s = load(scores + i);
    for (std::size_t p = 0; p < parts; ++p) {
      s.part[p] = exponential(hn::Sub(s.part[p], constant(maximum)));
      total.part[p] = hn::Add(total.part[p], s.part[p]);
    }
    save(s, scores + i);
  }
  for (std::size_t i = count; i < rounded; ++i) {
    scores[i] = 0.0F;
  }
  result[0] = maximum;
  result[1] = sum(total);
}

/// Adds weights times values of positions `[first, last)` of one page to the outputs. Lanes are elements.
template <std::size_t Queries, std::size_t Vectors>
HWY_INLINE void add_values(const kv_element* values, std::size_t head_dim, std::size_t first,
  std::size_t last, float* const* scores, float* const* outputs) {
  for (std::size_t d = 0; d < head_dim; d += Vectors * lanes) {
    vfloat o[Queries][Vectors];
    for (std::size_t q = 0; q < Queries; ++q) {
      for (std::size_t v = 0; v < Vectors; ++v) {
        o[q][v] = hn::LoadU(float_tag(), outputs[q] + d + v * lanes);
      }
    }
    for (std::size_t j = first; j < last; ++j) {
      vfloat row[Vectors];
      for (std::size_t v = 0; v < Vectors; ++v) {
        row[v] = load_halves(values + j * head_dim + d + v * lanes);
      }
      for (std::size_t q = 0; q < Queries; ++q) {
        const vfloat weight = constant(scores[q][j]);
        for (std::size_t v = 0; v < Vectors; ++v) {
          o[q][v] = fused(weight, row[v], o[q][v]);
        }
      }
    }
    for (std::size_t q = 0; q < Queries; ++q) {
      for (std::size_t v = 0; v < Vectors; ++v) {
        hn::StoreU(o[q][v], float_tag(), outputs[q] + d + v * lanes);
      }
    }
  }
}

template <std::size_t Queries>
HWY_INLINE void add_page(const kv_element* values, std::size_t head_dim, std::size_t first, std::size_t last,
  float* const* scores, float* const* outputs) {
  if (head_dim % (2 * lanes) == 0) {
    add_values<Queries, 2>(values, head_dim, first, last, scores, outputs);
  } else {
    add_values<Queries, 1>(values, head_dim, first, last, scores, outputs);
  }
}

/// How many positions of a segment that starts at `begin` stand before `position`.
HWY_INLINE std::size_t before(std::size_t position, std::size_t begin) {
  const std::size_t after = position > begin ? position - begin : 0;
  return after < segment_tokens ? after : segment_tokens;
}

HWY_INLINE std::size_t clamp(std::size_t x, std::size_t least, std::size_t most) {
  return x < least ? least : x < most ? x : most;
}

/// One segment for a tile of queries. Each query sees its own positions: what all of them see is computed
/// together, the rest alone, so that no query reads a value it must not see.
template <std::size_t Queries>
HWY_INLINE void attend_tile(const kv_pages& kv, const page_id* pages, const attention_query* queries,
  std::size_t begin, attention_score score, float* scratch, float* partials) {
  const std::size_t dim = kv.head_dim;
  // Each query sees [skipped, count) of the segment; all of them see [latest, least).
  std::size_t skipped[Queries];
  std::size_t count[Queries];
  float* scores[Queries];
  float* outputs[Queries];
  std::size_t earliest = segment_tokens;
  std::size_t latest = 0;
  std::size_t least = segment_tokens;
  std::size_t most = 0;
  for (std::size_t q = 0; q < Queries; ++q) {
    skipped[q] = before(queries[q].first, begin);
    count[q] = before(queries[q].visible, begin);
    earliest = skipped[q] < earliest ? skipped[q] : earliest;
    latest = skipped[q] > latest ? skipped[q] : latest;
    least = count[q] < least ? count[q] : least;
    most = count[q] > most ? count[q] : most;
    scores[q] = scratch + q * segment_tokens;
    outputs[q] = partials + q * partial_size(dim) + 2;
    __builtin_memset(outputs[q], 0, dim * sizeof(float));
  }
  pages += begin / page_tokens;
  earliest = earliest / page_tokens * page_tokens;
  least = least > latest ? least : latest;

  for (std::size_t start = earliest; start < most; start += page_tokens) {
    float* at[Queries];
    for (std::size_t q = 0; q < Queries; ++q) {
      at[q] = scores[q] + start;
    }
    score_page<Queries>(kv.base + pages[start / page_tokens] * kv.stride, dim, queries, score, at);
  }
  for (std::size_t q = 0; q < Queries; ++q) {
    float* const result = partials + q * partial_size(dim);
    if (count[q] <= skipped[q]) {
      result[0] = -__builtin_inff();
      result[1] = 0.0F;
    } else {
      soften(scores[q], skipped[q], count[q], result);
    }
  }
  for (std::size_t start = earliest; start < most; start += page_tokens) {
    const kv_element* const values = kv.base + pages[start / page_tokens] * kv.stride + page_tokens * dim;
    float* at[Queries];
    for (std::size_t q = 0; q < Queries; ++q) {
      at[q] = scores[q] + start;
    }
    const std::size_t end = start + page_tokens;
    const std::size_t from = clamp(latest, start, end) - start;
    const std::size_t to = clamp(least, start, end) - start;
    for (std::size_t q = 0; q < Queries; ++q) {
      const std::size_t own = clamp(skipped[q], start, end) - start;
      const std::size_t own_end = clamp(count[q], start, end) - start;
      const std::size_t until = own_end < from ? own_end : from;
      if (own < until) {
        add_page<1>(values, dim, own, until, at + q, outputs + q);
      }
    }
    if (from < to) {
      add_page<Queries>(values, dim, from, to, at, outputs);
    }
    for (std::size_t q = 0; q < Queries; ++q) {
      const std::size_t own = clamp(skipped[q], start, end) - start;
      const std::size_t own_end = clamp(count[q], start, end) - start;
      const std::size_t after = own > to ? own : to;
      if (after < own_end) {
        add_page<1>(values, dim, after, own_end, at + q, outputs + q);
      }
    }
  }
}

void attend(const kv_pages& kv, std::span<const attention_query> queries, std::size_t segment,
  attention_score score, float* scratch, float* partials) {
  const std::size_t begin = segment * segment_tokens;
  const page_id* const pages = kv.pages.data();
  const attention_query* query = queries.data();
  for (std::size_t left = queries.size(); left != 0;) {
    const std::size_t count = left < query_tile ? left : query_tile;
    switch (count) {
    case 4:
      attend_tile<4>(kv, pages, query, begin, score, scratch, partials);
      break;
    case 3:
      attend_tile<3>(kv, pages, query, begin, score, scratch, partials);
      break;
    case 2:
      attend_tile<2>(kv, pages, query, begin, score, scratch, partials);
      break;
    default:
      attend_tile<1>(kv, pages, query, begin, score, scratch, partials);
      break;
    }
    query += count;
    partials += count * partial_size(kv.head_dim);
    left -= count;
  }
}

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
  table.attend = &attend;
  table.merge = &merge;
  table.normalise = &normalise;
}

} // namespace godwit::ops::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
