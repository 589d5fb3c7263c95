#pragma once

#include "messages/result.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

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

struct array;

/// A metadata value. Strings and arrays point into the mapped file.
using value =
  std::variant<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t, std::int32_t, float,
    bool, std::uint64_t, std::int64_t, double, std::string_view, std::shared_ptr<const array>>;

/// A metadata array; nested arrays are refused at open.
struct array {
  std::vector<value> items;
};

/// A tensor as it lies in the file: rows of `shape[0]` elements, `shape[0]` varying fastest.
struct tensor {
  std::string_view name;
  tensor_type type;
  std::vector<std::uint64_t> shape; ///< 1 to 4 dimensions, innermost first; rows() x shape[0] elements
  std::span<const std::byte> data;  ///< within the mapping; rows() * row_bytes()

  std::uint64_t columns() const { return shape[0]; }
  std::uint64_t rows() const;
  std::size_t row_bytes() const;
};

/// A GGUF file of version 2 or 3, mapped read-only. Everything in it was checked when it was opened: sizes,
/// offsets, alignment, counts, strings, types, duplicate names. Views stay valid as long as the object lives.
class file {
 public:
  /// @returns `not_found`, `io`, `corrupt` (one sentence naming what is wrong) or `unsupported` (version,
  /// tensor type)
  static result<std::shared_ptr<const file>> open(const std::filesystem::path& path);

  /// The same checks over bytes in memory, for tests and fuzzing. The bytes must outlive the object.
  static result<std::shared_ptr<const file>> parse(std::span<const std::byte> bytes);

  ~file();
  file(const file&) = delete;
  file& operator=(const file&) = delete;

  std::uint32_t version() const { return version_; }
  std::size_t size_bytes() const { return bytes_.size(); }

  /// The metadata value of a key, or nullptr.
  const value* find(std::string_view key) const;
  const std::vector<std::pair<std::string_view, value>>& metadata() const { return metadata_; }

  /// Typed access; any integer type that holds the number is accepted.
  /// @returns `corrupt` naming the key if it is missing or of another type
  result<std::uint64_t> unsigned_value(std::string_view key) const;
  result<double> float_value(std::string_view key) const;
  result<std::string_view> string_value(std::string_view key) const;
  result<bool> bool_value(std::string_view key) const;

  const std::vector<tensor>& tensors() const { return tensors_; }
  /// The tensor of a name, or nullptr.
  const tensor* find_tensor(std::string_view name) const;

  /// Tells the kernel that the pages of this tensor are not needed any more (after repacking), so that
  /// resident memory falls; reading it again stays valid.
  void forget(const tensor& which) const;

 private:
  file() = default;

  std::span<const std::byte> bytes_;
  bool mapped_ = false;
  std::uint32_t version_ = 0;
  std::vector<std::pair<std::string_view, value>> metadata_;
  std::unordered_map<std::string_view, std::size_t> keys_;
  std::vector<tensor> tensors_;
  std::unordered_map<std::string_view, std::size_t> names_;
};

} // namespace godwit::gguf
