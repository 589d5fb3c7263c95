#pragma once

#include "kernels/gguf/tensor_type.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::gguf {

/// Builds a small GGUF file in memory: metadata and tensors in the order of the calls. Made for tests and
/// tools, so it checks nothing: what it is given, it writes.
///
///   writer made;
///   made.add("general.architecture", "llama").add("llama.block_count", std::uint32_t{2});
///   made.add_tensor("token_embd.weight", tensor_type::f32, {64, 256}, std::as_bytes(std::span(weights)));
///   const auto bytes = made.finish();
class writer {
 public:
  /// @param alignment of tensors; any but 32 is written as general.alignment
  explicit writer(std::uint32_t version = 3, std::uint32_t alignment = 32);

  writer& add(std::string_view key, std::uint8_t number);
  writer& add(std::string_view key, std::int8_t number);
  writer& add(std::string_view key, std::uint16_t number);
  writer& add(std::string_view key, std::int16_t number);
  writer& add(std::string_view key, std::uint32_t number);
  writer& add(std::string_view key, std::int32_t number);
  writer& add(std::string_view key, std::uint64_t number);
  writer& add(std::string_view key, std::int64_t number);
  writer& add(std::string_view key, float number);
  writer& add(std::string_view key, double number);
  writer& add(std::string_view key, bool flag);
  writer& add(std::string_view key, std::string_view text);
  writer& add(std::string_view key, const char* text) { return add(key, std::string_view(text)); }

  writer& add_array(std::string_view key, std::span<const std::string> items);
  writer& add_array(std::string_view key, std::span<const std::int32_t> items);
  writer& add_array(std::string_view key, std::span<const std::uint32_t> items);
  writer& add_array(std::string_view key, std::span<const float> items);

  /// A value of any type number, its bytes as they are: for what a reader must refuse.
  writer& add_raw(std::string_view key, std::uint32_t type, std::span<const std::byte> bytes);

  /// @param shape innermost dimension first
  /// @param bytes of the whole tensor, rows in order
  writer& add_tensor(std::string_view name, tensor_type type, std::vector<std::uint64_t> shape,
    std::span<const std::byte> bytes);

  /// The file so far.
  std::vector<std::byte> finish() const;

 private:
  struct entry {
    std::string name;
    std::uint32_t type;
    std::vector<std::uint64_t> shape; // of tensors
    std::vector<std::byte> bytes;
  };

  std::uint32_t version_;
  std::uint32_t alignment_;
  std::vector<entry> values_;
  std::vector<entry> tensors_;
};

} // namespace godwit::gguf
