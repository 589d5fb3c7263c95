#pragma once

#include "kernels/gguf/file.hpp"
#include "kernels/ops/cpu/aligned_buffer.hpp"
#include "kernels/ops/cpu/weight_arena.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace godwit::ops::cpu {

/// Outputs of one tile.
inline constexpr std::size_t tile_outputs = 32;
/// Inputs that share one activation scale.
inline constexpr std::size_t block_inputs = 32;

/// How the weights of a packed matrix lie in memory.
enum class weight_format : std::uint8_t {
  q4_signed,   ///< 4 bits minus 8, f16 scale: Q4_0
  q4_min,      ///< 4 bits, f16 scale and minimum: Q4_1
  q4_min_wide, ///< 4 bits, f32 scale and minimum: Q4_K
  q5_signed,   ///< 5 bits minus 16, f16 scale: Q5_0
  q5_min,      ///< 5 bits, f16 scale and minimum: Q5_1
  q5_min_wide, ///< 5 bits, f32 scale and minimum: Q5_K
  q6_half,     ///< 6 bits minus 32, an f32 scale for each 16 inputs: Q6_K
  q8,          ///< 8 bits, f16 scale: Q8_0
  f32,
  f16,
  bf16,
};

/// The numbers of a format that its layout follows from.
struct format_traits {
  std::uint8_t bits = 0;              ///< of a weight; 4, 5, 6 or 8 for quantised formats
  std::uint8_t offset = 0;            ///< a quantised weight is stored plus this
  std::uint8_t coefficients = 0;      ///< scales and minima of one output in a block
  std::uint8_t coefficient_bytes = 0; ///< 2 or 4
  bool quantised = false;

  constexpr std::size_t block_bytes() const { return tile_outputs * block_inputs * bits / 8; }
  constexpr std::size_t coefficient_block_bytes() const {
    return tile_outputs * coefficients * coefficient_bytes;
  }
  /// Bytes from one block of a tile to the next; a multiple of 64.
  constexpr std::size_t block_stride() const { return block_bytes() + coefficient_block_bytes(); }
};

constexpr format_traits traits(weight_format format) {
  switch (format) {
  case weight_format::q4_signed:
    return {4, 8, 1, 2, true};
  case weight_format::q4_min:
    return {4, 0, 2, 2, true};
  case weight_format::q4_min_wide:
    return {4, 0, 2, 4, true};
  case weight_format::q5_signed:
    return {5, 16, 1, 2, true};
  case weight_format::q5_min:
    return {5, 0, 2, 2, true};
  case weight_format::q5_min_wide:
    return {5, 0, 2, 4, true};
  case weight_format::q6_half:
    return {6, 32, 2, 4, true};
  case weight_format::q8:
    return {8, 128, 1, 2, true};
  case weight_format::f32:
    return {32, 0, 0, 0, false};
  case weight_format::f16:
    return {16, 0, 0, 0, false};
  case weight_format::bf16:
    return {16, 0, 0, 0, false};
  }
  return {};
}

/// Version of the layout below.
inline constexpr std::uint32_t packed_version = 2;

/// A weight matrix `[outputs, inputs]` in tiles of 32 outputs, so that one vector holds the same inputs of
/// neighbouring outputs and no sum across lanes is needed. The layout is the same for every vector width.
///
/// A quantised tile holds for each block of 32 inputs its weights, then its coefficients, so that all of it
/// is read in one direction. Weights:
///   8 bits: `[8 groups][32 outputs][4 inputs]`;
///   4 bits: `[4 groups][32 outputs][4 bytes]`, inputs 4g..4g+3 in the low halves, 16+4g..16+4g+3 in the
///   high;
///   5 bits: the low four as 4 bits, then `[32 outputs][4 bytes]`, whose bit g belongs to inputs 4g..4g+3;
///   6 bits: the low four, then `[2 halves][32 outputs][4 bytes]`, whose bits 2g, 2g+1 belong to inputs
///   4g..4g+3 of the half.
/// Coefficients: `[scale, or scales of both halves][32 outputs]`, then `[minimum][32
/// outputs]` where the format has one. A weight is `scale * (quant - offset) + minimum`.
///
/// A float tile is `[inputs][32 outputs]`. Outputs that fill up the last tile are zero.
class packed_part {
 public:
  /// The format for a type of the file.
  static weight_format format_for(gguf::tensor_type type);

  /// Allocates; `pack` fills.
  packed_part(weight_format format, std::size_t outputs, std::size_t inputs);
  /// The same in memory of an arena, which outlives the part.
  packed_part(weight_format format, std::size_t outputs, std::size_t inputs, weight_arena& arena);

  /// Weights that were packed before, `bytes_for` of them at a 64-byte boundary, which outlive the part.
  packed_part(
    weight_format format, std::size_t outputs, std::size_t inputs, std::span<const std::byte> packed);

  static std::size_t bytes_for(weight_format format, std::size_t outputs, std::size_t inputs);

  /// Packs one tile of `from`. Different tiles may be packed at the same time.
  void pack(const gguf::tensor& from, std::size_t tile);

  weight_format format() const { return format_; }
  std::size_t outputs() const { return outputs_; }
  std::size_t inputs() const { return inputs_; }
  std::size_t tiles() const { return (outputs_ + tile_outputs - 1) / tile_outputs; }
  std::size_t blocks() const { return inputs_ / block_inputs; }
  std::span<const std::byte> bytes() const { return bytes_; }

  std::size_t tile_bytes() const { return tile_bytes_; }
  const std::byte* tile(std::size_t index) const { return bytes_.data() + index * tile_bytes_; }

  /// The weights of one output as floats, rounded once from their exact values.
  /// @param values `[inputs]`
  void unpack(std::size_t output, std::span<float> values) const;

 private:
  weight_format format_;
  std::size_t outputs_;
  std::size_t inputs_;
  std::size_t tile_bytes_;
  aligned_buffer data_;       ///< unless the memory is another's
  std::span<std::byte> room_; ///< to pack into; none if they were packed before
  std::span<const std::byte> bytes_;
};

} // namespace godwit::ops::cpu
