#pragma once

#include "kernels/ops/cpu/aligned_buffer.hpp"
#include "kernels/ops/cpu/attention_plan.hpp"
#include "kernels/ops/cpu/kernels.hpp"
#include "kernels/ops/cpu/packed_file.hpp"
#include "kernels/ops/cpu/read_ahead.hpp"
#include "kernels/ops/cpu/weight_arena.hpp"
#include "kernels/ops/op_set.hpp"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace godwit::ops::cpu {

/// The ops on repacked weights and activations quantised to 8 bits; kernels.hpp has the contract. Splits the
/// work of each op over the team; the kernels of one target do it.
class cpu_ops final : public op_set {
 public:
  /// What keys and values are kept in if nobody says.
  static constexpr kv_type own_kv = kv_type::f16;

  /// @returns `unsupported` if heads are not multiples of 16 elements, or for pages of f32
  static result<std::unique_ptr<op_set>> make(
    const kernel_table& kernels, const op_shape& shape, team& threads);

  std::string_view name() const override { return name_; }
  std::uint64_t steps() const override { return steps_; }
  kv_type kv_elements() const override { return shape_.kv.type; }
  std::size_t resident_bytes() const override;

  void keep_packed(packed_file* kept) override { kept_ = kept; }
  result<std::unique_ptr<matrix>> load_matrix(
    const gguf::file& file, std::span<const gguf::tensor* const> parts) override;
  result<std::unique_ptr<gain>> load_gain(const gguf::file& file, const gguf::tensor& tensor) override;

  void begin(const step& what) override;
  void embed(worker& self, const matrix& table, float scale) override;
  void norm(worker& self, const gain& weight) override;
  void product(worker& self, const matrix& weights) override;
  void add_product(worker& self, const matrix& weights) override;
  void add_norm(worker& self, const gain& weight) override;
  void rotate_and_store(worker& self, std::uint32_t layer, const head_weights& weights) override;
  void attend(worker& self, std::uint32_t layer) override;
  void gated_product(worker& self, const matrix& weights, activation act) override;
  void tap(worker& self, std::span<const std::uint32_t> rows, std::span<float> values) override;
  void finish(
    worker& self, const gain& weight, const matrix& head, float cap, std::span<float> logits) override;

 private:
  cpu_ops(const kernel_table& kernels, const op_shape& shape, team& threads);

  /// Rows that a product reads, in both forms.
  struct input_rows {
    aligned_array<float> floats;
    aligned_array<std::int8_t> quants;
    aligned_array<block_info> blocks;

    input_rows() = default;
    input_rows(std::size_t rows, std::size_t width)
      : floats{rows * width}, quants{rows * width}, blocks{rows * width / block_inputs} {}
    std::size_t bytes() const { return floats.bytes() + quants.bytes() + blocks.bytes(); }
  };

  /// Of one thread.
  struct scratch {
    input_rows* in = nullptr;     ///< where `in` is: one of the shared inputs, or `normed`
    input_rows normed;            ///< of few rows
    aligned_array<float> row;     ///< [input]
    aligned_array<float> gates;   ///< [gated_rows, tile_outputs]
    aligned_array<float> ups;     ///< the same
    aligned_buffer tile;          ///< [product_scratch_bytes]
    aligned_array<float> scores;  ///< [attention_scratch]
    aligned_array<float> results; ///< [queries, partial_size]
    aligned_array<float> later;   ///< [queries, partial_size]
    std::vector<attention_query> queries;
    const tile_places* next = nullptr;    ///< what the last product was loaded before
    std::vector<const std::byte*> coming; ///< pages that attention will read
    reading_list list;                    ///< of those
  };

  /// Bytes of pages that a thread asks for ahead of a layer's attention at most: the second cache is not much
  /// larger.
  static constexpr std::size_t most_coming = std::size_t{1} << 20;

  /// Packs a tensor, or takes it from where it was kept.
  packed_part load_part(const gguf::tensor& tensor, weight_format format);
  std::size_t rows() const { return step_.tokens.size(); }
  /// Elements from one row of inputs to the next: rows start at multiples of a block.
  static std::size_t padded(std::size_t width) {
    return (width + block_inputs - 1) / block_inputs * block_inputs;
  }
  float* x(std::size_t row) { return x_.data() + row * shape_.embedding; }
  product_input input(scratch& own, std::size_t width) const;
  /// True if each thread should norm so many rows for itself.
  bool norms_alone(const worker& self, std::size_t count) const;
  /// Norms row `from` of x into row `to` of the input.
  void norm_row(scratch& own, const gain& weight, std::size_t from, std::size_t to);
  /// Quantises the whole blocks of `count` elements that start at `offset` of a row of an input.
  void quantise(input_rows& to, const float* values, std::size_t count, std::size_t row, std::size_t offset,
    std::size_t width) const;
  void multiply(worker& self, const matrix& weights, std::size_t rows, const product_output& out);
  /// Writes the row's turns for every kind of rotary positions.
  void make_turns(std::size_t row);
  float* turns(std::size_t rope, std::size_t row) {
    return turns_.data() + (rope * shape_.max_rows + row) * shape_.rotary;
  }
  /// Biases, norms and turns `count` heads of a row in place.
  void prepare_heads(
    float* heads, std::size_t count, const float* bias, const gain* norm, const float* turns) const;
  /// The pages that a task reads.
  std::span<const page_id> pages_of(const attention_task& task, std::uint32_t layer) const;
  /// Lists what the thread will probably read in the attention of a layer, to be asked for in products.
  void list_coming(worker& self, std::uint32_t layer);
  /// @param next what the thread will probably do then, or nullptr
  void attend_task(scratch& own, const attention_task& task, const attention_task* next, std::uint32_t layer);
  /// The slot from which on a row whose positions end before `end` sees its sequence.
  std::size_t first_seen(
    const step_sequence& part, std::uint32_t layer, std::uint32_t head, position_t end) const;
  /// Where a row's result of attention for a head stands in the input.
  float* attended(const scratch& own, std::size_t row, std::size_t head) {
    const std::size_t dim = shape_.kv.head_dim;
    return own.in->floats.data() + row * padded(shape_.heads * dim) + head * dim;
  }
  /// True if a block of the input may hold parts of two groups of `count` heads.
  bool heads_share_blocks(std::size_t count) const { return count * shape_.kv.head_dim % block_inputs != 0; }
  void quantise_heads(const scratch& own, std::size_t row, std::size_t head, std::size_t count);
  /// Merges the segments of some heads of a row where they were split, and quantises what no task has.
  void merge_heads(scratch& own, std::uint32_t row, std::uint32_t head, std::uint32_t count);

  const kernel_table& kernels_;
  kv_kernels pages_; ///< of the type that was decided on
  std::string name_;
  op_shape shape_;
  team& threads_;
  packed_file* kept_ = nullptr;
  std::shared_ptr<tile_places> loaded_last_; ///< what follows the matrix that was loaded last
  std::uint64_t steps_ = 0;
  step step_;

  bool needs_quants_ = false; ///< some matrix reads quantised inputs
  bool needs_floats_ = false;
  std::size_t weight_bytes_ = 0;
  std::size_t weight_blocks_ = 0;       ///< runs of 32 inputs of a tile, in all matrices
  std::shared_ptr<weight_arena> arena_; ///< also of the matrices that stand in it

  aligned_array<float> x_;
  std::array<input_rows, 2> inputs_; ///< a gated product reads the first and writes the second
  aligned_array<float> out_;
  aligned_array<float> turns_; ///< [ropes, max_rows, rotary / 2][cos, sin]

  attention_plan plan_;
  aligned_array<float> partials_;              ///< [slots, partial_size]
  std::vector<std::uint32_t> sequence_of_row_; ///< [rows]
  std::vector<scratch> scratch_;               ///< [threads]
};

} // namespace godwit::ops::cpu
