// Attention over pages of one type. Included once for each target, by a file for each type: so that none of
// them takes long to compile, and what is changed for one type changes no instruction of another.
#if defined(GODWIT_OPS_CPU_ATTENTION_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef GODWIT_OPS_CPU_ATTENTION_INL
#undef GODWIT_OPS_CPU_ATTENTION_INL
#else
#define GODWIT_OPS_CPU_ATTENTION_INL
#endif

#include "kernels/ops/cpu/kernels.hpp"
#include "kernels/ops/cpu/simd/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace godwit::ops::cpu::HWY_NAMESPACE {
namespace {

/// Queries that go through a segment together.
inline constexpr std::size_t batch_queries = 24;
/// Queries whose sums stand in registers at the same time, at most.
inline constexpr std::size_t query_tile = 6;
/// The same for scores of one page, where vectors are as long as a page: half as many conversions.
inline constexpr std::size_t score_tile = 12;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
/// Units beside those for products convert elements as they are loaded.
inline constexpr bool convert_once = false;
#else
/// Conversions take the place of products: where there are many queries a page is converted once for all.
inline constexpr bool convert_once = true;
#endif

HWY_INLINE vfloat load_elements(const kv_element* from) {
  return load_halves(from);
}
HWY_INLINE vfloat load_elements(const float* from) {
  return hn::LoadU(float_tag(), from);
}
HWY_INLINE vfloat load_elements(const kv_bfloat* from) {
  return load_bfloats(reinterpret_cast<const std::uint16_t*>(from));
}
/// Exact, without the scale.
HWY_INLINE vfloat load_elements(const std::int8_t* from) {
  const hn::Rebind<std::int8_t, float_tag> bytes;
  return hn::ConvertTo(float_tag(), hn::PromoteTo(int_tag(), hn::LoadU(bytes, from)));
}

inline constexpr std::size_t line_bytes = 64;

HWY_INLINE void ask(const std::byte* line) {
  __builtin_prefetch(line, 0, 2);
}

/// A query's part of one segment.
struct segment_query {
  const float* vector;
  float* scores;       ///< [segment_tokens]; first scores, then weights
  float* output;       ///< [head_dim]
  std::size_t skipped; ///< it sees [skipped, count) of the segment
  std::size_t count;
};

/// Scores of `Vectors` vectors of positions for `Queries` queries. Lanes are positions.
/// @param keys   where each vector's elements start
/// @param scales where each vector's scales start; read only if `Scaled`
/// @param next   what should be asked for meanwhile: up to two halves of pages
template <bool Scaled, std::size_t Queries, std::size_t Vectors, class Element>
HWY_INLINE void score_lanes(const Element* const* keys, const kv_scale* const* scales, std::size_t head_dim,
  const segment_query* queries, attention_score score, std::size_t at, const std::byte* next,
  const std::byte* after_next) {
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
      first[v] = load_elements(keys[v] + d * page_tokens);
      second[v] = load_elements(keys[v] + (d + 1) * page_tokens);
    }
    // Two elements of 16 positions are a line, or half of one.
    constexpr std::size_t step = 2 * page_tokens * sizeof(Element);
    const std::size_t line = d * page_tokens * sizeof(Element);
    if (step >= line_bytes || line % line_bytes == 0) {
      if (next != nullptr) {
        ask(next + line);
      }
      if (after_next != nullptr) {
        ask(after_next + line);
      }
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
  vfloat scale_of[Vectors];
  for (std::size_t v = 0; v < Vectors; ++v) {
    scale_of[v] = Scaled ? load_halves(scales[v]) : constant(1.0F);
  }
  for (std::size_t q = 0; q < Queries; ++q) {
    for (std::size_t v = 0; v < Vectors; ++v) {
      vfloat sum = hn::Add(even[q][v], odd[q][v]);
      if constexpr (Scaled) {
        sum = hn::Mul(sum, scale_of[v]);
      }
      const vfloat made = hn::Mul(sum, constant(score.scale));
      hn::StoreU(
        score.cap == 0.0F ? made : capped(made, score.cap), float_tag(), queries[q].scores + at + v * lanes);
    }
  }
}

/// Scores of the page that starts at position `start` of the segment.
template <bool Scaled, std::size_t Queries, class Element>
HWY_INLINE void score_page(const Element* keys, const kv_scale* scales, std::size_t head_dim,
  const segment_query* queries, attention_score score, std::size_t start, const std::byte* next) {
  if constexpr (parts == 2) {
    // With two vectors to a page three queries fill the registers, and each number of theirs is used twice.
    if constexpr (Queries > 3) {
      score_page<Scaled, 3>(keys, scales, head_dim, queries, score, start, next);
      score_page<Scaled, Queries - 3>(keys, scales, head_dim, queries + 3, score, start, nullptr);
    } else {
      const Element* const both[2] = {keys, keys + lanes};
      const kv_scale* const both_scales[2] = {scales, Scaled ? scales + lanes : nullptr};
      score_lanes<Scaled, Queries, 2>(both, both_scales, head_dim, queries, score, start, next, nullptr);
    }
  } else {
    for (std::size_t lane = 0; lane < page_tokens; lane += lanes) {
      const Element* const from = keys + lane;
      const kv_scale* const from_scales = Scaled ? scales + lane : nullptr;
      score_lanes<Scaled, Queries, 1>(
        &from, &from_scales, head_dim, queries, score, start + lane, lane == 0 ? next : nullptr, nullptr);
    }
  }
}

/// The greatest score that a query sees; those before them and up to the next multiple of 16 become so low
/// that their weight is zero.
HWY_INLINE float hide_and_find(const segment_query& query) {
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
  return greatest(best);
}

/// Turns scores into weights in place: exp(score - maximum). @returns their sum
HWY_INLINE float weigh(const segment_query& query, float maximum) {
  float* const scores = query.scores;
  const std::size_t from = query.skipped / 16 * 16;
  const std::size_t to = (query.count + 15) / 16 * 16;
  wide total = all(0.0F);
  for (std::size_t i = from; i < to; i += 16) {
    wide s = load(scores + i);
    for (std::size_t p = 0; p < parts; ++p) {
      s.part[p] = exponential(hn::Sub(s.part[p], constant(maximum)));
      total.part[p] = hn::Add(total.part[p], s.part[p]);
    }
    save(s, scores + i);
  }
  return sum(total);
}

/// Scores of all queries become weights. First all maxima, then all weights: none waits for its own.
/// @param partials `[count, partial_size]`, whose maxima and sums are set
HWY_INLINE void soften(
  const segment_query* queries, std::size_t count, std::size_t head_dim, float* partials) {
  const std::size_t size = partial_size(head_dim);
  for (std::size_t q = 0; q < count; ++q) {
    if (queries[q].skipped < queries[q].count) {
      partials[q * size] = hide_and_find(queries[q]);
    }
  }
  for (std::size_t q = 0; q < count; ++q) {
    if (queries[q].skipped < queries[q].count) {
      partials[q * size + 1] = weigh(queries[q], partials[q * size]);
    }
  }
}

/// Some pages' values, and what should be asked for while they are read.
template <class Element>
struct value_pages {
  const Element* const* values;
  std::size_t count;
  const std::byte* const* next = nullptr; ///< [count] or none; each may be none
};

/// Adds weights times values of positions `[first, last)` of each page to the outputs. Lanes are elements.
template <std::size_t Queries, std::size_t Vectors, class Element>
HWY_INLINE void add_elements(const value_pages<Element>& pages, std::size_t head_dim, std::size_t start,
  std::size_t first, std::size_t last, const segment_query* queries) {
  for (std::size_t d = 0; d < head_dim; d += Vectors * lanes) {
    vfloat o[Queries][Vectors];
    for (std::size_t q = 0; q < Queries; ++q) {
      for (std::size_t v = 0; v < Vectors; ++v) {
        o[q][v] = hn::LoadU(float_tag(), queries[q].output + d + v * lanes);
      }
    }
    for (std::size_t page = 0; page < pages.count; ++page) {
      const Element* const values = pages.values[page] + d;
      const std::byte* const next = pages.next != nullptr ? pages.next[page] : nullptr;
      const std::size_t at = start + page * page_tokens;
      for (std::size_t j = first; j < last; ++j) {
        vfloat row[Vectors];
        for (std::size_t v = 0; v < Vectors; ++v) {
          row[v] = load_elements(values + j * head_dim + v * lanes);
        }
        if (next != nullptr) {
          for (std::size_t i = 0; i < Vectors * lanes; i += line_bytes / sizeof(Element)) {
            ask(next + (j * head_dim + d + i) * sizeof(Element));
          }
        }
        for (std::size_t q = 0; q < Queries; ++q) {
          const vfloat weight = constant(queries[q].scores[at + j]);
          for (std::size_t v = 0; v < Vectors; ++v) {
            o[q][v] = fused(weight, row[v], o[q][v]);
          }
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
HWY_INLINE void add_values(const value_pages<Element>& pages, std::size_t head_dim, std::size_t start,
  std::size_t first, std::size_t last, const segment_query* queries) {
  // As many sums as registers hold: 24 of 32, 12 of 16.
  constexpr std::size_t most = lanes == 16 || Queries <= 3 ? 4 : 2;
  if (head_dim % (most * lanes) == 0) {
    add_elements<Queries, most>(pages, head_dim, start, first, last, queries);
  } else {
    add_elements<Queries, 1>(pages, head_dim, start, first, last, queries);
  }
}

HWY_INLINE std::size_t clamp(std::size_t x, std::size_t least, std::size_t most) {
  return x < least ? least : x < most ? x : most;
}

/// Positions of a page that all of some queries see.
struct shared_range {
  std::size_t from;
  std::size_t to;
};

template <std::size_t Queries>
HWY_INLINE shared_range seen_by_all(const segment_query* queries, std::size_t start) {
  shared_range range{start, start + page_tokens};
  for (std::size_t q = 0; q < Queries; ++q) {
    range.from = range.from > queries[q].skipped ? range.from : queries[q].skipped;
    range.to = range.to < queries[q].count ? range.to : queries[q].count;
  }
  return range;
}

/// Adds the values of the page that starts at `start`, of which some queries see a part only. What all
/// queries see is computed together, the rest alone, so that no query reads a value it must not see.
template <std::size_t Queries, class Element>
HWY_NOINLINE void add_part(const Element* values, std::size_t head_dim, std::size_t start, shared_range range,
  const segment_query* queries) {
  const value_pages<Element> page{&values, 1};
  const std::size_t end = start + page_tokens;
  const std::size_t from = range.from < end ? range.from : end;
  const std::size_t to = range.to > from ? range.to : from;
  for (std::size_t q = 0; q < Queries; ++q) {
    const std::size_t own = clamp(queries[q].skipped, start, end);
    const std::size_t own_end = clamp(queries[q].count, start, end);
    const std::size_t until = own_end < from ? own_end : from;
    if (own < until) {
      add_values<1>(page, head_dim, start, own - start, until - start, queries + q);
    }
  }
  if (from < to) {
    add_values<Queries>(page, head_dim, start, from - start, to - start, queries);
  }
  for (std::size_t q = 0; q < Queries; ++q) {
    const std::size_t own = clamp(queries[q].skipped, start, end);
    const std::size_t own_end = clamp(queries[q].count, start, end);
    const std::size_t after = own > to ? own : to;
    if (after < own_end) {
      add_values<1>(page, head_dim, start, after - start, own_end - start, queries + q);
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

inline constexpr std::size_t segment_page_count = segment_tokens / page_tokens;

/// The pages of a segment, and those of the next one or of the next list, which are asked for in the order of
/// their addresses while this one is used: a half of a page at each step.
template <kv_type Type>
struct segment_pages {
  using element = typename kv_format<Type>::element;
  using places = kv_places<Type>;
  static constexpr bool scaled = kv_format<Type>::scaled;

  const element* keys[segment_page_count];
  const element* values[segment_page_count];
  const kv_scale* key_scales[scaled ? segment_page_count : 1];
  std::size_t begin; ///< pages [begin, end) are seen
  std::size_t end;
  std::size_t dim;
  const std::byte* next[2 * segment_page_count]; ///< what is asked for with keys, then with values

  HWY_INLINE segment_pages(const kv_pages& kv, std::size_t first, std::size_t from, std::size_t to)
    : begin{from}, end{to}, dim{kv.head_dim} {
    for (std::size_t page = from; page < to; ++page) {
      const std::byte* const start = kv.base + kv.pages[first + page] * kv.stride;
      keys[page] = reinterpret_cast<const element*>(start);
      values[page] = reinterpret_cast<const element*>(start + places::values(dim));
      if constexpr (scaled) {
        key_scales[page] = reinterpret_cast<const kv_scale*>(start + places::key_scales(dim));
      }
    }
    const std::size_t following = first + segment_page_count;
    for (std::size_t i = 0; i < segment_page_count; ++i) {
      const std::size_t page = following + i;
      const std::byte* asked = nullptr;
      if (page < kv.asked) {
        asked = kv.base + kv.pages[page] * kv.stride;
      } else if (page - kv.asked < kv.next.size()) {
        asked = kv.next_base + kv.next[page - kv.asked] * kv.stride;
      }
      next[2 * i] = asked;
      next[2 * i + 1] = asked != nullptr ? asked + places::values(dim) : nullptr;
      if (scaled && asked != nullptr) {
        ask(asked + places::key_scales(dim));
      }
    }
  }

  HWY_INLINE const kv_scale* scales(std::size_t page) const { return scaled ? key_scales[page] : nullptr; }
};

/// The weights of values take the scales of their positions, so that values are used as they lie.
template <kv_type Type>
HWY_INLINE void scale_weights(
  const segment_pages<Type>& pages, const segment_query* queries, std::size_t count) {
  if constexpr (kv_format<Type>::scaled) {
    for (std::size_t page = pages.begin; page < pages.end; ++page) {
      const std::size_t start = page * page_tokens;
      const kv_scale* const scales = pages.key_scales[page] + page_tokens;
      for (std::size_t lane = 0; lane < page_tokens; lane += lanes) {
        const vfloat scale = load_halves(scales + lane);
        for (std::size_t q = 0; q < count; ++q) {
          if (queries[q].count > start && queries[q].skipped < start + page_tokens) {
            float* const weights = queries[q].scores + start + lane;
            hn::StoreU(hn::Mul(hn::LoadU(float_tag(), weights), scale), float_tag(), weights);
          }
        }
      }
    }
  }
}

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

/// Scores of all seen pages for some queries.
template <std::size_t Queries, kv_type Type>
HWY_INLINE void score_all(
  const segment_pages<Type>& pages, const segment_query* queries, attention_score score, bool ask) {
  constexpr bool scaled = kv_format<Type>::scaled;
  std::size_t page = pages.begin;
  if constexpr (parts == 1 && Queries <= query_tile) {
    // Two pages at a time: each number of a query is loaded once for both.
    for (; page + 2 <= pages.end; page += 2) {
      if (sees(queries, Queries, page * page_tokens) || sees(queries, Queries, (page + 1) * page_tokens)) {
        const kv_scale* const* const scales = scaled ? pages.key_scales + page : nullptr;
        score_lanes<scaled, Queries, 2>(pages.keys + page, scales, pages.dim, queries, score,
          page * page_tokens, ask ? pages.next[page] : nullptr, ask ? pages.next[page + 1] : nullptr);
      }
    }
  }
  for (; page < pages.end; ++page) {
    if (sees(queries, Queries, page * page_tokens)) {
      score_page<scaled, Queries>(pages.keys[page], pages.scales(page), pages.dim, queries, score,
        page * page_tokens, ask ? pages.next[page] : nullptr);
    }
  }
}

/// Values of all seen pages for some queries: what all of them see whole in one go.
template <std::size_t Queries, kv_type Type>
HWY_INLINE void add_all(const segment_pages<Type>& pages, const segment_query* queries, bool ask) {
  const std::size_t dim = pages.dim;
  std::size_t page = pages.begin;
  while (page < pages.end) {
    std::size_t whole = page;
    shared_range range{};
    while (whole < pages.end) {
      range = seen_by_all<Queries>(queries, whole * page_tokens);
      if (range.from != whole * page_tokens || range.to != (whole + 1) * page_tokens) {
        break;
      }
      ++whole;
    }
    if (whole != page) {
      const std::byte* const* const next = ask ? pages.next + segment_page_count + page : nullptr;
      add_values<Queries>(
        value_pages<typename kv_format<Type>::element>{pages.values + page, whole - page, next}, dim,
        page * page_tokens, 0, page_tokens, queries);
      page = whole;
      continue;
    }
    if (sees(queries, Queries, page * page_tokens)) {
      add_part<Queries>(pages.values[page], dim, page * page_tokens, range, queries);
    }
    ++page;
  }
}

/// Elements are converted where they are used, and what comes next is asked for.
template <kv_type Type>
HWY_INLINE void attend_in_place(const segment_pages<Type>& pages, const segment_query* queries,
  std::size_t count, attention_score score, float* partials) {
  std::size_t done = 0;
  if constexpr (parts == 1) {
    for (; done + score_tile <= count; done += score_tile) {
      score_all<score_tile>(pages, queries + done, score, done == 0);
    }
  }
  for_tiles(count - done, [&]<std::size_t Queries>(std::size_t q) {
    score_all<Queries>(pages, queries + done + q, score, done + q == 0);
  });
  soften(queries, count, pages.dim, partials);
  scale_weights(pages, queries, count);
  for_tiles(count, [&]<std::size_t Queries>(std::size_t q) { add_all<Queries>(pages, queries + q, q == 0); });
}

/// Converts `count` elements.
template <class Element>
HWY_INLINE const float* converted(const Element* from, std::size_t count, float* to) {
  for (std::size_t i = 0; i < count; i += lanes) {
    hn::StoreU(load_elements(from + i), float_tag(), to + i);
  }
  return to;
}

/// Each page is converted once for all queries.
template <kv_type Type>
HWY_INLINE void attend_converted(const segment_pages<Type>& pages, const segment_query* queries,
  std::size_t count, attention_score score, float* floats, float* partials) {
  constexpr bool scaled = kv_format<Type>::scaled;
  const std::size_t dim = pages.dim;
  for (std::size_t page = pages.begin; page < pages.end; ++page) {
    const float* const keys = converted(pages.keys[page], page_tokens * dim, floats);
    for_tiles(count, [&]<std::size_t Queries>(std::size_t q) {
      if (sees(queries + q, Queries, page * page_tokens)) {
        score_page<scaled, Queries>(
          keys, pages.scales(page), dim, queries + q, score, page * page_tokens, nullptr);
      }
    });
  }
  soften(queries, count, dim, partials);
  scale_weights(pages, queries, count);
  for (std::size_t page = pages.begin; page < pages.end; ++page) {
    const float* const values = converted(pages.values[page], page_tokens * dim, floats);
    for_tiles(count, [&]<std::size_t Queries>(std::size_t q) {
      const std::size_t start = page * page_tokens;
      const shared_range range = seen_by_all<Queries>(queries + q, start);
      if (range.from == start && range.to == start + page_tokens) {
        add_values<Queries>(value_pages<float>{&values, 1}, dim, start, 0, page_tokens, queries + q);
      } else if (sees(queries + q, Queries, start)) {
        add_part<Queries>(values, dim, start, range, queries + q);
      }
    });
  }
}

/// How many positions of a segment that starts at `begin` stand before `position`.
HWY_INLINE std::size_t before(std::size_t position, std::size_t begin) {
  const std::size_t after = position > begin ? position - begin : 0;
  return after < segment_tokens ? after : segment_tokens;
}

template <kv_type Type>
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
    const segment_pages<Type> pages{
      kv, begin / page_tokens, earliest / page_tokens, (most + page_tokens - 1) / page_tokens};
    if (!convert_once || count <= query_tile) {
      attend_in_place(pages, parts_of, count, score, partials);
    } else {
      attend_converted(pages, parts_of, count, score, scratch + count * segment_tokens, partials);
    }
    partials += count * size;
  }
}

} // namespace
} // namespace godwit::ops::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
