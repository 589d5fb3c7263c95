#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace godwit::gguf {

/// Element types of tensors, numbered as in the file.
enum class tensor_type : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  bf16 = 30,
};

/// The type of a number in a file, if it is one of those above.
std::optional<tensor_type> to_tensor_type(std::uint32_t number);

/// The name as the field writes it: "Q4_1".
std::string_view to_string(tensor_type type);

/// Elements that are stored together: 1 for floats, 32 or 256 for quantised types. Rows hold whole blocks.
std::size_t block_elements(tensor_type type);

/// Bytes of one such block.
std::size_t block_bytes(tensor_type type);

} // namespace godwit::gguf
