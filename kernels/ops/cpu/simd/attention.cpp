// Attention over pages. Compiled once for each target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/cpu/simd/attention.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include "kernels/ops/cpu/kernels.hpp"
#include "kernels/ops/cpu/simd/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace godwit::ops::cpu::HWY_NAMESPACE {
namespace {

/// Queries that go through a segment together.
inline constexpr std::size_t batch_queries = 24;
/// Queries whose sums stand in registers at the same time, at most.
inline constexpr std::size_t query_tile = 6;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
/// Units beside those for products convert elements as they are loaded.
inline constexpr bool convert_once = false;
#else
/// Conversions take the place of products: where there are many queries a page is converted once for all.
inline constexpr bool convert_once = true;
#endif
/// Pages whose content is asked for ahead of its use.
inline constexpr std::size_t pages_ahead = 2;

HWY_INLINE vfloat load_elements(const kv_element* from) {
  return load_halves(from);
}
HWY_INLINE vfloat load_elements(const float* from) {
  return hn::LoadU(float_tag(), from);
}

HWY_INLINE void ask(const kv_element* line) {
  __builtin_prefetch(line, 0, 3);
}

/// A query's part of one segment.
struct segment_query {
  const float* vector;
  float* scores;       ///< [segment_tokens]; first scores, then weights
  float* output;       ///< [head_dim]
  std::size_t skipped; ///< it sees [skipped, count) of the segment
  std::size_t count;
};

/// Scores of `Vectors` vectors of a page's positions for `Queries` queries. Lanes are positions.
template <std::size_t Queries, std::size_t Vectors, class Element>
HWY_INLINE void score_lanes(const Element* keys, std::size_t head_dim, const segment_query* queries,
  attention_score score, std::size_t at, const kv_element* next) {
  vfloat even[Queries][Vectors];
  vfloat odd[Queries][Vectors];
  for (std::size_t q = 0; q < Queries; ++q) {
    for (std::size_t v = 0; v < Vectors; ++v) {
      even[q][v] = odd[q][v] = constant(0.0F);
    }
  }
  for (std::size_t d = 0; d < head_dim; d += 2) {
    vfloat first[Vectors];
    vfloat second[Vectors];
    for (std::size_t v = 0; v < Vectors; ++v) {
      first[v] = load_elements(keys + d * page_tokens + v * lanes);
      second[v] = load_elements(keys + (d + 1) * page_tokens + v * lanes);
    }
    if (next != nullptr) {
      ask(next + d * page_tokens);
    }
    for (std::size_t q = 0; q < Queries; ++q) {
      const vfloat a = constant(queries[q].vector[d]);
      const vfloat b = constant(queries[q].vector[d + 1]);
      for (std::size_t v = 0; v < Vectors; ++v) {
        even[q][v] = fused(a, first[v], even[q][v]);
        odd[q][v] = fused(b, second[v], odd[q][v]);
      }
    }
  }
  for (std::size_t q = 0; q < Queries; ++q) {
    for (std::size_t v = 0; v < Vectors; ++v) {
      const vfloat made = hn::Mul(hn::Add(even[q][v], odd[q][v]), constant(score.scale));
      hn::StoreU(
        score.cap == 0.0F ? made : capped(made, score.cap), float_tag(), queries[q].scores + at + v * lanes);
    }
  }
}

/// Scores of the page that starts at position `start` of the segment.
/// @param next the keys or values that will be used soon, if they should be asked for
template <std::size_t Queries, class Element>
HWY_INLINE void score_page(const Element* keys, std::size_t head_dim, const segment_query* queries,
  attention_score score, std::size_t start, const kv_element* next) {
  if constexpr (parts == 2) {
    // With two vectors to a page three queries fill the registers, and each number of theirs is used twice.
    if constexpr (Queries > 3) {
      score_page<3>(keys, head_dim, queries, score, start, next);
      score_page<Queries - 3>(keys, head_dim, queries + 3, score, start, nullptr);
    } else {
      score_lanes<Queries, 2>(keys, head_dim, queries, score, start, next);
    }
  } else {
    for (std::size_t lane = 0; lane < page_tokens; lane += lanes) {
      score_lanes<Queries, 1>(
        keys + lane, head_dim, queries, score, start + lane, lane == 0 ? next : nullptr);
    }
  }
}

/// Turns the scores that a query sees into weights in place: exp(score - maximum), zero before them and up to
/// the next multiple of 16.
/// @param result `[maximum, sum]`
HWY_INLINE void soften(const segment_query& query, float* result) {
  float* const scores = query.scores;
  const std::size_t from = query.skipped / 16 * 16;
  const std::size_t to = (query.count + 15) / 16 * 16;
  const float lowest = -__builtin_inff();
  for (std::size_t i = from; i < query.skipped; ++i) {
    scores[i] = lowest;
  }
  for (std::size_t i = query.count; i < to; ++i) {
    scores[i] = lowest;
  }
  wide best = all(lowest);
  for (std::size_t i = from; i < to; i += 16) {
    const wide s = load(scores + i);
    for (std::size_t p = 0; p < parts; ++p) {
      best.part[p] = hn::Max(s.part[p], best.part[p]);
    }
  }
  const float maximum = greatest(best);
  wide total = all(0.0F);
  for (std::size_t i = from; i < to; i += 16) {
    wide s = load(scores + i);
    for (std::size_t p = 0; p < parts; ++p) {
      s.part[p] = exponential(hn::Sub(s.part[p], constant(maximum)));
      total.part[p] = hn::Add(total.part[p], s.part[p]);
    }
    save(s, scores + i);
  }
  result[0] = maximum;
  result[1] = sum(total);
}

/// Adds weights times values of positions `[first, last)` of one page to the outputs. Lanes are elements.
template <std::size_t Queries, std::size_t Vectors, class Element>
HWY_INLINE void add_elements(const Element* values, std::size_t head_dim, std::size_t start,
  std::size_t first, std::size_t last, const segment_query* queries, const kv_element* next) {
  for (std::size_t d = 0; d < head_dim; d += Vectors * lanes) {
    vfloat o[Queries][Vectors];
    for (std::size_t q = 0; q < Queries; ++q) {
      for (std::size_t v = 0; v < Vectors; ++v) {
        o[q][v] = hn::LoadU(float_tag(), queries[q].output + d + v * lanes);
      }
    }
    for (std::size_t j = first; j < last; ++j) {
      vfloat row[Vectors];
      for (std::size_t v = 0; v < Vectors; ++v) {
        row[v] = load_elements(values + j * head_dim + d + v * lanes);
      }
      if (next != nullptr) {
        for (std::size_t i = 0; i < Vectors * lanes; i += 32) {
          ask(next + j * head_dim + d + i);
        }
      }
      for (std::size_t q = 0; q < Queries; ++q) {
        const vfloat weight = constant(queries[q].scores[start + j]);
        for (std::size_t v = 0; v < Vectors; ++v) {
          o[q][v] = fused(weight, row[v], o[q][v]);
        }
      }
    }
    for (std::size_t q = 0; q < Queries; ++q) {
      for (std::size_t v = 0; v < Vectors; ++v) {
        hn::StoreU(o[q][v], float_tag(), queries[q].output + d + v * lanes);
      }
    }
  }
}

template <std::size_t Queries, class Element>
HWY_INLINE void add_values(const Element* values, std::size_t head_dim, std::size_t start, std::size_t first,
  std::size_t last, const segment_query* queries, const kv_element* next) {
  // As many sums as registers hold: 24 of 32, 12 of 16.
  constexpr std::size_t most = lanes == 16 || Queries <= 3 ? 4 : 2;
  if (head_dim % (most * lanes) == 0) {
    add_elements<Queries, most>(values, head_dim, start, first, last, queries, next);
  } else {
    add_elements<Queries, 1>(values, head_dim, start, first, last, queries, next);
  }
}

HWY_INLINE std::size_t clamp(std::size_t x, std::size_t least, std::size_t most) {
  return x < least ? least : x < most ? x : most;
}

/// Adds the values of the page that starts at `start`. What all queries see is computed together, the rest
/// alone, so that no query reads a value it must not see.
template <std::size_t Queries, class Element>
HWY_INLINE void add_page(const Element* values, std::size_t head_dim, std::size_t start,
  const segment_query* queries, const kv_element* next) {
  const std::size_t end = start + page_tokens;
  std::size_t from = start;
  std::size_t to = end;
  for (std::size_t q = 0; q < Queries; ++q) {
    from = from > queries[q].skipped ? from : queries[q].skipped;
    to = to < queries[q].count ? to : queries[q].count;
  }
  if (from == start && to == end) {
    add_values<Queries>(values, head_dim, start, 0, page_tokens, queries, next);
    return;
  }
  from = from < end ? from : end;
  to = to > from ? to : from;
  for (std::size_t q = 0; q < Queries; ++q) {
    const std::size_t own = clamp(queries[q].skipped, start, end);
    const std::size_t own_end = clamp(queries[q].count, start, end);
    const std::size_t until = own_end < from ? own_end : from;
    if (own < until) {
      add_values<1>(values, head_dim, start, own - start, until - start, queries + q, nullptr);
    }
  }
  if (from < to) {
    add_values<Queries>(values, head_dim, start, from - start, to - start, queries, next);
  }
  for (std::size_t q = 0; q < Queries; ++q) {
    const std::size_t own = clamp(queries[q].skipped, start, end);
    const std::size_t own_end = clamp(queries[q].count, start, end);
    const std::size_t after = own > to ? own : to;
    if (after < own_end) {
      add_values<1>(values, head_dim, start, after - start, own_end - start, queries + q, nullptr);
    }
  }
}

/// Calls `use.template operator()<Queries>(first)` for tiles of `count` queries.
template <class Use>
HWY_INLINE void for_tiles(std::size_t count, Use&& use) {
  std::size_t q = 0;
  for (; q + query_tile <= count; q += query_tile) {
    use.template operator()<query_tile>(q);
  }
  switch (count - q) {
  case 5:
    use.template operator()<3>(q);
    use.template operator()<2>(q + 3);
    break;
  case 4:
    use.template operator()<4>(q);
    break;
  case 3:
    use.template operator()<3>(q);
    break;
  case 2:
    use.template operator()<2>(q);
    break;
  case 1:
    use.template operator()<1>(q);
    break;
  default:
    break;
  }
}

/// The pages of a segment.
struct segment_pages {
  const kv_pages& kv;
  std::size_t first; ///< page that holds the first position
  std::size_t begin; ///< pages [begin, end) after it are seen
  std::size_t end;

  HWY_INLINE const kv_element* keys(std::size_t page) const {
    return kv.base + kv.pages[first + page] * kv.stride;
  }
  HWY_INLINE const kv_element* values(std::size_t page) const {
    return keys(page) + page_tokens * kv.head_dim;
  }
  /// What is used after the keys of a page, `pages_ahead` pages later: keys, and then values.
  HWY_INLINE const kv_element* after_keys(std::size_t page) const {
    const std::size_t next = page + pages_ahead;
    return next < end ? keys(next) : values(next - end + begin < end ? next - end + begin : begin);
  }
  /// The same after values: the next segment's keys follow, whether this call reads them or a later one.
  HWY_INLINE const kv_element* after_values(std::size_t page) const {
    const std::size_t next = page + pages_ahead;
    return next < end ? values(next) : first + next < kv.pages.size() ? keys(next) : values(page);
  }
};

/// True if one of `tile` queries sees something of the page that starts at `start`. A tile that sees nothing
/// is not computed; its scores are never read.
HWY_INLINE bool sees(const segment_query* queries, std::size_t tile, std::size_t start) {
  for (std::size_t q = 0; q < tile; ++q) {
    if (queries[q].count > start && queries[q].skipped < start + page_tokens) {
      return true;
    }
  }
  return false;
}

/// Elements are converted where they are used, and what comes next is asked for.
HWY_INLINE void attend_in_place(const segment_pages& pages, const segment_query* queries, std::size_t count,
  attention_score score, float* partials) {
  const std::size_t dim = pages.kv.head_dim;
  for_tiles(count, [&]<std::size_t Queries>(std::size_t q) {
    for (std::size_t page = pages.begin; page < pages.end; ++page) {
      if (sees(queries + q, Queries, page * page_tokens)) {
        score_page<Queries>(pages.keys(page), dim, queries + q, score, page * page_tokens,
          q == 0 ? pages.after_keys(page) : nullptr);
      }
    }
  });
  for (std::size_t q = 0; q < count; ++q) {
    if (queries[q].skipped < queries[q].count) {
      soften(queries[q], partials + q * partial_size(dim));
    }
  }
  for_tiles(count, [&]<std::size_t Queries>(std::size_t q) {
    for (std::size_t page = pages.begin; page < pages.end; ++page) {
      if (sees(queries + q, Queries, page * page_tokens)) {
        add_page<Queries>(pages.values(page), dim, page * page_tokens, queries + q,
          q == 0 ? pages.after_values(page) : nullptr);
      }
    }
  });
}

/// Converts `count` elements.
HWY_INLINE const float* converted(const kv_element* from, std::size_t count, float* to) {
  for (std::size_t i = 0; i < count; i += lanes) {
    hn::StoreU(load_halves(from + i), float_tag(), to + i);
  }
  return to;
}

/// Each page is converted once for all queries.
HWY_INLINE void attend_converted(const segment_pages& pages, const segment_query* queries, std::size_t count,
  attention_score score, float* floats, float* partials) {
  const std::size_t dim = pages.kv.head_dim;
  for (std::size_t page = pages.begin; page < pages.end; ++page) {
    const float* const keys = converted(pages.keys(page), page_tokens * dim, floats);
    for_tiles(count, [&]<std::size_t Queries>(std::size_t q) {
      if (sees(queries + q, Queries, page * page_tokens)) {
        score_page<Queries>(keys, dim, queries + q, score, page * page_tokens, nullptr);
      }
    });
  }
  for (std::size_t q = 0; q < count; ++q) {
    if (queries[q].skipped < queries[q].count) {
      soften(queries[q], partials + q * partial_size(dim));
    }
  }
  for (std::size_t page = pages.begin; page < pages.end; ++page) {
    const float* const values = converted(pages.values(page), page_tokens * dim, floats);
    for_tiles(count, [&]<std::size_t Queries>(std::size_t q) {
      if (sees(queries + q, Queries, page * page_tokens)) {
        add_page<Queries>(values, dim, page * page_tokens, queries + q, nullptr);
      }
    });
  }
}

/// How many positions of a segment that starts at `begin` stand before `position`.
HWY_INLINE std::size_t before(std::size_t position, std::size_t begin) {
  const std::size_t after = position > begin ? position - begin : 0;
  return after < segment_tokens ? after : segment_tokens;
}

void attend(const kv_pages& kv, std::span<const attention_query> queries, std::size_t segment,
  attention_score score, float* scratch, float* partials) {
  const std::size_t begin = segment * segment_tokens;
  const std::size_t size = partial_size(kv.head_dim);
  for (std::size_t done = 0; done < queries.size(); done += batch_queries) {
    const std::size_t left = queries.size() - done;
    const std::size_t count = left < batch_queries ? left : batch_queries;
    segment_query parts_of[batch_queries];
    std::size_t earliest = segment_tokens;
    std::size_t most = 0;
    for (std::size_t q = 0; q < count; ++q) {
      const attention_query& query = queries.data()[done + q];
      float* const result = partials + q * size;
      segment_query& own = parts_of[q];
      own = {query.vector, scratch + q * segment_tokens, result + 2, before(query.first, begin),
        before(query.visible, begin)};
      result[0] = -__builtin_inff();
      __builtin_memset(result + 1, 0, (size - 1) * sizeof(float));
      if (own.skipped < own.count) {
        earliest = own.skipped < earliest ? own.skipped : earliest;
        most = own.count > most ? own.count : most;
      }
    }
    const segment_pages pages{
      kv, begin / page_tokens, earliest / page_tokens, (most + page_tokens - 1) / page_tokens};
    if (!convert_once || count <= query_tile) {
      attend_in_place(pages, parts_of, count, score, partials);
    } else {
      attend_converted(pages, parts_of, count, score, scratch + count * segment_tokens, partials);
    }
    partials += count * size;
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
