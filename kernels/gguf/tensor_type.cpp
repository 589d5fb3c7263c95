#include "kernels/gguf/tensor_type.hpp"

#include "messages/check.hpp"

#include <algorithm>
#include <array>

namespace godwit::gguf {
namespace {

struct traits {
  tensor_type type;
  std::string_view name;
  std::size_t elements;
  std::size_t bytes;
};

// Scales are halves of two bytes each; Q5 adds four bytes of fifth bits; K types hold 256 elements in eight
// or sixteen sub-blocks with packed sub-scales.
constexpr std::array table{
  traits{tensor_type::f32, "F32", 1, 4},
  traits{tensor_type::f16, "F16", 1, 2},
  traits{tensor_type::q4_0, "Q4_0", 32, 2 + 16},
  traits{tensor_type::q4_1, "Q4_1", 32, 4 + 16},
  traits{tensor_type::q5_0, "Q5_0", 32, 2 + 4 + 16},
  traits{tensor_type::q5_1, "Q5_1", 32, 4 + 4 + 16},
  traits{tensor_type::q8_0, "Q8_0", 32, 2 + 32},
  traits{tensor_type::q4_k, "Q4_K", 256, 4 + 12 + 128},
  traits{tensor_type::q5_k, "Q5_K", 256, 4 + 12 + 32 + 128},
  traits{tensor_type::q6_k, "Q6_K", 256, 128 + 64 + 16 + 2},
  traits{tensor_type::bf16, "BF16", 1, 2},
};

const traits& traits_of(tensor_type type) {
  const auto found = std::ranges::find(table, type, &traits::type);
  GODWIT_CHECK(found != table.end());
  return *found;
}

} // namespace

std::optional<tensor_type> to_tensor_type(std::uint32_t number) {
  const auto found = std::ranges::find_if(
    table, [&](const traits& t) { return static_cast<std::uint32_t>(t.type) == number; });
  if (found == table.end())
    return std::nullopt;
  return found->type;
}

std::string_view to_string(tensor_type type) {
  return traits_of(type).name;
}

std::size_t block_elements(tensor_type type) {
  return traits_of(type).elements;
}

std::size_t block_bytes(tensor_type type) {
  return traits_of(type).bytes;
}

} // namespace godwit::gguf
