#pragma once

#include "kernels/ops/op_set.hpp"
#include "kernels/ops/reference/loops.hpp"

#include <vector>

namespace godwit::ops::reference {

/// Version of what is computed; part of a model's fingerprint.
inline constexpr std::uint32_t contract_version = 1;

/// The definition of every op: scalar code, activations and sums in double, weights dequantised exactly, keys
/// and values in pages of singles unless others are asked for. Sums run over ascending inputs or positions.
/// Slow; what the others are measured against.
class reference_ops final : public op_set {
 public:
  /// What keys and values are kept in if nobody says.
  static constexpr kv_type own_kv = kv_type::f32;

  reference_ops(const op_shape& shape, team& threads);

  std::string_view name() const override { return "reference"; }
  std::uint64_t steps() const override { return steps_; }
  kv_type kv_elements() const override { return shape_.kv.type; }
  std::size_t resident_bytes() const override;

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
  static constexpr std::size_t group = row_group;

  std::size_t rows() const { return step_.tokens.size(); }
  /// Inputs lie as [rows / group][width][group].
  double& input(std::size_t row, std::size_t width, std::size_t i) {
    return in_[((row / group) * width + i) * group + row % group];
  }
  void norm_row(const gain& weight, std::size_t from, std::size_t to);
  /// Calls `take(row, output, sum)` for all rows and this thread's outputs.
  template <class Take>
  void multiply(worker& self, const matrix& weights, std::size_t rows, Take&& take);
  void rotate(double* x, position_t position, const rope& by) const;
  /// Biases and norms of the `[heads + 2 * kv_heads, head_dim]` of a row.
  void prepare_heads(double* heads, const head_weights& weights) const;
  void attend_head(std::uint32_t layer, std::size_t row, std::size_t head, std::uint32_t thread);

  loops loops_;
  op_shape shape_;
  std::uint64_t steps_ = 0;
  step step_;
  std::vector<double> x_;
  std::vector<double> in_;
  std::vector<double> out_;
  std::vector<std::uint32_t> sequence_of_row_;
  std::vector<std::vector<double>> scratch_; ///< [threads]: weights of a row, or scores and sums of a head
  std::vector<std::vector<float>> pages_;    ///< [threads]: a page's keys or values
};

} // namespace godwit::ops::reference
