#pragma once

#include "kernels/ops/cpu/aligned_buffer.hpp"
#include "kernels/ops/cpu/packed.hpp"
#include "kernels/ops/cpu/read_ahead.hpp"
#include "kernels/ops/cpu/weight_arena.hpp"
#include "kernels/ops/op_set.hpp"

#include <memory>
#include <utility>
#include <vector>

// What the `cpu` ops make of a model's tensors.
namespace godwit::ops::cpu {

/// Matrices that share their input; outputs follow each other.
class packed_matrix final : public matrix {
 public:
  explicit packed_matrix(std::shared_ptr<const weight_arena> arena) : arena_{std::move(arena)} {}

  /// The matrix that was loaded next, which is probably used next.
  std::shared_ptr<tile_places> following = std::make_shared<tile_places>();

  std::uint32_t outputs() const override { return outputs_; }
  std::uint32_t inputs() const override { return static_cast<std::uint32_t>(parts.front().inputs()); }

  void add(packed_part part) {
    outputs_ += static_cast<std::uint32_t>(part.outputs());
    tiles += part.tiles();
    parts.push_back(std::move(part));
  }

  std::vector<packed_part> parts;
  std::size_t tiles = 0;

 private:
  std::shared_ptr<const weight_arena> arena_; ///< that the parts may stand in
  std::uint32_t outputs_ = 0;
};

class float_gain final : public gain {
 public:
  explicit float_gain(std::size_t count) : values(count) {}
  aligned_array<float> values;
};

/// The values of a bias from an element on, or nullptr.
inline const float* values_from(const gain* bias, std::size_t element) {
  return bias == nullptr ? nullptr : static_cast<const float_gain*>(bias)->values.data() + element;
}

inline const packed_matrix& packed(const matrix& weights) {
  return static_cast<const packed_matrix&>(weights);
}

} // namespace godwit::ops::cpu
