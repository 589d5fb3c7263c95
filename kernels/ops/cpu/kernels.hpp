#pragma once

#include "kernels/memory/kv_layout.hpp"
#include "kernels/ops/cpu/packed.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

/// The contract of the `cpu` ops. Every float operation is an IEEE single one (add, multiply, fused
/// multiply-add, divide, square root) in the order that is stated here, so that every vector width gives the
/// same bits. Sums over a row run in 16 virtual lanes: element i goes to lane i mod 16, in ascending order,
/// and the lanes are added as a tree (8 apart, 4, 2, 1).
///
///   quantise   for 32 inputs: scale = max|x| / 127, q = round_to_even(x * (127 / max|x|))
///   product    for each output, blocks ascending: acc = fma(float(exact integer dot), w_scale * x_scale,
///   acc),
///              then, where the weights have a minimum, acc = fma(minimum, x_scale * float(sum of q), acc);
///              float weights: acc = fma(x, w, acc), inputs ascending
///   norm       y = (x * (1 / sqrt(sum(x²) / n + epsilon))) * weight, the sum as fma(x, x, lane)
///   gate       y = (a / (1 + exp(-a))) * b; for gelu_tanh y = (a / (1 + exp(-w))) * b with
///              w = fma(a * a, 2 sqrt(2 / pi) * 0.044715, 2 sqrt(2 / pi)) * a
///   cap        y = (1 - 2 / (1 + exp(min(x * (2 / cap), 88)))) * cap
///   rotate     y0 = fma(x0, cos, x1 * -sin), y1 = fma(x1, cos, x0 * sin)
///   scores     even and odd elements of the query in two chains of fma, ascending; (even + odd) * scale; cap
///   attention  kept positions in segments of 128; in a segment m = max, p = exp(s - m), l = sum of p in 16
///   lanes,
///              o = fma(p, v, o), positions ascending; segments are merged in ascending order
///   pages      fp16 and bf16: to the nearest, ties to even, beyond the greatest to that; int8: for a
///   position's
///              key or value s = half(max|x| / 127), at most the greatest half, q = round_to_even(x * (1 /
///              s)), at most 127 in magnitude; scores are ((even + odd) of q * s) * scale, and o = fma(p * s,
///              q, o)
///   exp        a polynomial, see simd/lanes-inl.hpp
namespace godwit::ops::cpu {

/// Version of the above; part of a model's fingerprint.
inline constexpr std::uint32_t contract_version = 1;

/// Rows from which on a product unpacks its weights to scratch memory; before, that costs more than it saves.
inline constexpr std::size_t many_rows = 192;

/// Bytes of scratch memory that a product with `inputs` needs: a block of bytes and two float coefficients.
constexpr std::size_t product_scratch_bytes(std::size_t inputs) {
  return inputs / block_inputs * tile_outputs * (block_inputs + 2 * sizeof(float));
}

/// Positions of one attention segment.
inline constexpr std::size_t segment_tokens = 128;

/// Of one row and block of 32 inputs.
struct block_info {
  float scale = 0;                    ///< x = scale * q
  float scaled_sum = 0;               ///< scale * sum of q
  std::int32_t minus_8 = 0;           ///< -8 * sum of q: takes the offset of 4-bit weights back
  std::int32_t minus_128 = 0;         ///< -128 * sum of q: the same for 8 bits
  std::int32_t minus_128_of_half = 0; ///< of the first 16 inputs
};

/// Blocks of 32 floats to quantise.
struct quantise_from {
  const float* data = nullptr;
  std::size_t stride = 0; ///< floats from a block to the next
};

/// Where they go.
struct quantise_to {
  std::int8_t* quants = nullptr;
  std::size_t quant_stride = 0; ///< from a block to the next
  block_info* blocks = nullptr;
  std::size_t block_stride = 0; ///< the same
};

/// Memory that a thread will read later. A product that leaves the memory time asks for it little by little.
struct reading_list {
  const std::byte* const* runs = nullptr; ///< [count]
  std::size_t count = 0;
  std::size_t run_bytes = 0; ///< of each
  std::size_t lines = 0;     ///< of 64 bytes to ask for with each block of weights
  std::size_t run = 0;       ///< how far it is
  std::size_t offset = 0;
};

/// Inputs of a product: both forms have the same rows; a form that no weight needs may be absent.
struct product_input {
  const std::int8_t* quants = nullptr; ///< [rows, stride]
  const block_info* blocks = nullptr;  ///< [rows, stride / 32]
  const float* floats = nullptr;       ///< [rows, stride]
  std::size_t stride = 0;              ///< a multiple of 32
  reading_list* later = nullptr;       ///< what to ask for meanwhile; of one thread

  /// The rows from `row` on.
  product_input from(std::size_t row) const {
    return {
      quants + row * stride, blocks + row * (stride / block_inputs), floats + row * stride, stride, later};
  }
};

/// Outputs of a product.
struct product_output {
  float* data = nullptr; ///< row 0 of output `first`
  std::size_t stride = 0;
  bool add = false;      ///< add to what is there
  std::size_t first = 0; ///< the part's output that stands at `data`; a multiple of tile_outputs
};

/// The KV pages of one layer and head of a sequence.
struct kv_pages {
  const std::byte* base = nullptr;
  std::size_t stride = 0; ///< bytes of a page
  std::span<const page_id> pages;
  std::size_t head_dim = 0;             ///< a multiple of 16
  std::size_t asked = 0;                ///< pages before this one may be asked for ahead of their use
  const std::byte* next_base = nullptr; ///< the same of what the thread will probably read then
  std::span<const page_id> next = {};
};

/// A rotated query vector and which positions of the page list it sees: those from `first` on, below
/// `visible`.
struct attention_query {
  const float* vector = nullptr;
  std::size_t visible = 0;
  std::size_t first = 0;
};

/// What a product of query and key becomes.
struct attention_score {
  float scale = 0; ///< it times this
  float cap = 0;   ///< and then capped, unless it is 0
};

/// Head of a partial result of attention: `[maximum, sum, unscaled output (head_dim)]`. A sum of zero stands
/// for no positions.
constexpr std::size_t partial_size(std::size_t head_dim) {
  return head_dim + 2;
}

/// Floats of scratch memory for attention: scores, and a converted page.
constexpr std::size_t attention_scratch(std::size_t queries, std::size_t head_dim) {
  return queries * segment_tokens + page_tokens * head_dim;
}

/// What writes and reads pages of one type.
struct kv_kernels {
  /// Writes keys and values of one position into a page.
  void (*store)(
    const float* k, const float* v, std::size_t head_dim, std::byte* page, std::size_t slot) = nullptr;
  /// One segment of some queries.
  /// @param scratch  `[attention_scratch]`
  /// @param partials `[queries, partial_size]`
  void (*attend)(const kv_pages& kv, std::span<const attention_query> queries, std::size_t segment,
    attention_score score, float* scratch, float* partials) = nullptr;
};

/// The ops of one target. All of them are safe to call from several threads on different outputs.
struct kernel_table {
  std::string_view name; ///< "avx2"
  std::string_view description;
  std::int64_t target = 0;                  ///< Highway's bit
  std::int64_t (*compiled_for)() = nullptr; ///< the same, answered by the target's own code

  /// @param count a multiple of 32
  void (*quantise)(const float* x, std::size_t count, std::int8_t* quants, block_info* blocks) = nullptr;
  /// The same for `count` blocks that do not follow each other.
  void (*quantise_blocks)(const quantise_from& from, const quantise_to& to, std::size_t count) = nullptr;
  void (*norm)(const float* x, const float* weight, std::size_t count, float epsilon, float* y) = nullptr;
  void (*gate)(const float* a, const float* b, std::size_t count, float* y) = nullptr;
  void (*gate_gelu)(const float* a, const float* b, std::size_t count, float* y) = nullptr;
  void (*cap)(float* x, std::size_t count, float cap) = nullptr;
  /// @param turns `[count / 2][cos, sin]`
  void (*rotate)(float* x, const float* turns, std::size_t count) = nullptr;
  /// Turns element i with element `count / 2 + i`.
  void (*rotate_halves)(float* x, const float* turns, std::size_t count) = nullptr;
  kv_kernels halves = {};  ///< for pages of f16
  kv_kernels bfloats = {}; ///< of bf16
  kv_kernels bytes = {};   ///< of int8
  /// Rows `[first_row, last_row)` of the outputs in tiles `[first_tile, last_tile)`.
  /// @param scratch `[product_scratch_bytes]` at a 64-byte boundary; of one thread
  void (*product)(const packed_part& weights, const product_input& in, std::size_t first_row,
    std::size_t last_row, std::size_t first_tile, std::size_t last_tile, const product_output& out,
    std::byte* scratch) = nullptr;
  /// Adds a later segment to an earlier result.
  void (*merge)(const float* later, std::size_t head_dim, float* result) = nullptr;
  /// Merges partials that follow each other, in their order: what `merge` one after the other would give.
  /// @param count at least 1
  void (*merge_run)(const float* partials, std::size_t count, std::size_t head_dim, float* result) = nullptr;
  /// y = output / sum
  void (*normalise)(const float* partial, std::size_t head_dim, float* y) = nullptr;

  /// Those for pages of this type, which is not f32.
  const kv_kernels& pages(kv_type type) const {
    return type == kv_type::bf16 ? bfloats : type == kv_type::int8 ? bytes : halves;
  }
};

/// The targets that were compiled in, best first. Whether this machine has them is another question.
std::span<const kernel_table> compiled_targets();

/// True if this machine can run the target.
bool runs_here(const kernel_table& table);

} // namespace godwit::ops::cpu
