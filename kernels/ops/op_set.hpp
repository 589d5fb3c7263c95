#pragma once

#include "kernels/gguf/file.hpp"
#include "kernels/memory/sequence.hpp"
#include "kernels/ops/rope.hpp"
#include "kernels/threads/team.hpp"
#include "messages/ids.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace godwit::ops {

namespace cpu {
class packed_file;
}

/// How one layer looks at positions.
struct layer_attention {
  std::uint32_t rope = 0;   ///< index of its rotary positions
  std::uint32_t window = 0; ///< a row sees this many positions, the last one its own; 0: all up to its own
};

/// The widths that a graph needs, in elements of one row, and what its attention is like.
struct op_shape {
  std::uint32_t max_rows = 0;  ///< rows of the largest step
  std::uint32_t embedding = 0; ///< the residual stream
  std::uint32_t input = 0;     ///< the widest input of a product
  std::uint32_t output = 0;    ///< the widest output of a product, logits and gated ones aside
  std::uint32_t gated = 0;     ///< the widest result of a gated product
  std::uint32_t heads = 0;
  std::uint32_t context = 0; ///< positions that may occur
  std::uint32_t rotary = 0;  ///< leading elements of a head that carry a position; even
  rope_pairs pairs = rope_pairs::neighbours;
  std::vector<rope> ropes; ///< each of rotary / 2 frequencies
  std::vector<layer_attention> layers;
  double attention_scale = 0; ///< scores are q · k times this
  double score_cap = 0;       ///< and then cap * tanh(score / cap), unless it is 0
  float norm_epsilon = 0;
  kv_shape kv;                      ///< `type` is decided by the implementation
  std::optional<kv_type> wanted_kv; ///< of its pages; nothing: what the implementation takes by itself
};

/// Weights of one matrix, or of several that share their input, as one implementation keeps them. Outputs of
/// joined matrices follow each other.
class matrix {
 public:
  virtual ~matrix() = default;
  virtual std::uint32_t outputs() const = 0;
  virtual std::uint32_t inputs() const = 0;
};

/// One weight for each element of a row: of a norm, or a bias.
class gain {
 public:
  virtual ~gain() = default;
};

/// What is done to queries, keys and values before positions turn them; nullptr where a model has none.
struct head_weights {
  const gain* query_bias = nullptr; ///< [heads * head_dim]
  const gain* key_bias = nullptr;   ///< [kv_heads * head_dim]
  const gain* value_bias = nullptr; ///< [kv_heads * head_dim]
  const gain* query_norm = nullptr; ///< [head_dim], of each head on its own
  const gain* key_norm = nullptr;   ///< [head_dim]
};

/// What a gated layer does to its gate.
enum class activation : std::uint8_t {
  silu,      ///< a / (1 + exp(-a))
  gelu_tanh, ///< a / 2 * (1 + tanh(sqrt(2 / pi) * (a + 0.044715 a^3))) (Hendrycks and Gimpel, GELU)
};

/// The rows of one sequence in a step.
struct step_sequence {
  const sequence* target = nullptr; ///< not advanced yet; its pages are writable for `rows` more positions
  std::uint32_t first_row = 0;
  std::uint32_t rows = 0;
};

/// What one step computes. All spans stay valid until it is done.
struct step {
  std::span<const token_id> tokens;      ///< [rows]
  std::span<const position_t> positions; ///< [rows]
  std::span<const step_sequence> sequences;
  std::span<const std::uint32_t> wanted; ///< ascending rows whose logits are asked for
};

/// One implementation of all ops that a transformer graph is made of, with the activations of a step. It
/// works like a small machine with three registers, so that an implementation chooses the form of its
/// activations and may fuse what follows each other:
///
///     x    [rows, embedding]  the residual stream
///     in   [rows, input]      what the next product reads
///     out  [rows, output]     what the last product gave, or [rows, 2 * gated]
///
/// `load_*` and `begin` are called by one thread. The ops are called by every thread of the team with the
/// same arguments, and each ends with a barrier. A row's result never depends, bit for bit, on the other
/// rows, on how its sequence was cut into steps, on the number of threads or on the vector width of the
/// machine.
class op_set {
 public:
  virtual ~op_set() = default;

  /// The name in the dispatch table; an implementation with several targets asks the code that it calls.
  virtual std::string_view name() const = 0;
  /// Steps that were begun.
  virtual std::uint64_t steps() const = 0;
  /// The KV pages it reads and writes.
  virtual kv_type kv_elements() const = 0;
  /// Bytes of weights, activations and tables.
  virtual std::size_t resident_bytes() const = 0;

  /// Where packed weights are kept from one load to the next; used by `load_matrix` until it is taken away by
  /// nullptr. What matrices found there they go on using. An implementation that packs nothing ignores it.
  virtual void keep_packed(cpu::packed_file*) {}
  /// @param parts tensors of two dimensions with equal columns, which stay valid as long as the file
  /// @returns `unsupported` for a type or width that the implementation cannot take
  virtual result<std::unique_ptr<matrix>> load_matrix(
    const gguf::file& file, std::span<const gguf::tensor* const> parts) = 0;
  virtual result<std::unique_ptr<gain>> load_gain(const gguf::file& file, const gguf::tensor& tensor) = 0;

  /// Plans a step.
  virtual void begin(const step& what) = 0;

  /// x = rows of `table` that the tokens name, times `scale`
  virtual void embed(worker& self, const matrix& table, float scale) = 0;
  /// in = x / rms(x) * weight
  virtual void norm(worker& self, const gain& weight) = 0;
  /// out = in · weightsᵀ
  virtual void product(worker& self, const matrix& weights) = 0;
  /// x += in · weightsᵀ
  virtual void add_product(worker& self, const matrix& weights) = 0;
  /// out holds `[embedding]`: x += out / rms(out) * weight
  virtual void add_norm(worker& self, const gain& weight) = 0;
  /// out holds `[heads + 2 * kv_heads, head_dim]`: queries, keys, values. Adds biases, norms heads, turns
  /// queries and keys by their positions and appends keys and values to the pages of `layer`.
  virtual void rotate_and_store(worker& self, std::uint32_t layer, const head_weights& weights) = 0;
  /// in = softmax(scores) · v over the positions that each row sees, of those that its sequence has kept in
  /// the head's list
  virtual void attend(worker& self, std::uint32_t layer) = 0;
  /// in = act(a) * b, where a and b are in · weightsᵀ for the two halves of the outputs. `out` is lost.
  virtual void gated_product(worker& self, const matrix& weights, activation act) = 0;
  /// values = x of these rows
  /// @param rows   ascending
  /// @param values `[rows, embedding]`
  virtual void tap(worker& self, std::span<const std::uint32_t> rows, std::span<float> values) = 0;
  /// logits = (x / rms(x) * weight) · headᵀ for the wanted rows. Overwrites `in`.
  /// @param cap    logits become cap * tanh(logit / cap), unless it is 0
  /// @param logits `[wanted rows, head.outputs()]`
  virtual void finish(
    worker& self, const gain& weight, const matrix& head, float cap, std::span<float> logits) = 0;
};

} // namespace godwit::ops
