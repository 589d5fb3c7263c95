#pragma once

#include "kernels/gguf/tensor_type.hpp"
#include "messages/result.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace godwit::gguf {

/// What a file may at most hold. Everything is bounded by the file's own size as well, before memory is
/// taken.
struct limits {
  static constexpr std::uint64_t keys = 65'536;
  static constexpr std::uint64_t tensors = 65'536;
  static constexpr std::uint64_t key_bytes = 65'535;
  static constexpr std::uint64_t tensor_name_bytes = 255;
  static constexpr std::uint64_t string_bytes = std::uint64_t{16} << 20;
  static constexpr std::uint64_t array_items = std::uint64_t{1} << 24;
  static constexpr std::uint64_t alignment = 65'536;
  static constexpr std::uint32_t dimensions = 4;
};

/// A metadata array: one vector of the file's element type. Nested arrays are refused at open. Strings point
/// into the mapped file.
struct array {
  using storage = std::variant<std::vector<std::uint8_t>, std::vector<std::int8_t>,
    std::vector<std::uint16_t>, std::vector<std::int16_t>, std::vector<std::uint32_t>,
    std::vector<std::int32_t>, std::vector<float>, std::vector<bool>, std::vector<std::uint64_t>,
    std::vector<std::int64_t>, std::vector<double>, std::vector<std::string_view>>;

  storage items;

  std::size_t size() const;
};

/// A metadata value. Strings and arrays of strings point into the mapped file.
using value =
  std::variant<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t, std::int32_t, float,
    bool, std::uint64_t, std::int64_t, double, std::string_view, std::shared_ptr<const array>>;

/// A tensor as it lies in the file: rows of `shape[0]` elements, `shape[0]` varying fastest.
struct tensor {
  std::string_view name;
  tensor_type type = tensor_type::f32;
  std::vector<std::uint64_t> shape; ///< 1 to 4 dimensions, innermost first; rows() x shape[0] elements
  std::span<const std::byte> data;  ///< within the mapping; rows() * row_bytes()

  std::uint64_t columns() const { return shape[0]; }
  std::uint64_t rows() const;
  std::size_t row_bytes() const;
};

/// A GGUF file of version 2 or 3, mapped read-only. Everything in it was checked when it was opened: sizes,
/// offsets, alignment, counts, strings, types, duplicate names, tensors that overlap. Views stay valid as
/// long as the object lives. Immutable, so any thread may read it. Who replaces a model writes a new file and
/// renames it: cutting a mapped file short ends its readers.
class file {
 public:
  /// @returns `not_found`, `permission`, `io`, `corrupt` (one sentence naming what is wrong) or `unsupported`
  /// (version, tensor type). No message names the path.
  static result<std::shared_ptr<const file>> open(const std::filesystem::path& path);

  /// The same checks over bytes in memory, for tests and fuzzing. The bytes must outlive the object; tensors
  /// are aligned relative to their first byte.
  static result<std::shared_ptr<const file>> parse(std::span<const std::byte> bytes);

  ~file();
  file(const file&) = delete;
  file& operator=(const file&) = delete;

  std::uint32_t version() const { return version_; }
  std::size_t size_bytes() const { return bytes_.size(); }

  /// The metadata value of a key, or nullptr.
  const value* find(std::string_view key) const;
  /// All keys and values, in the order of the file.
  const std::vector<std::pair<std::string_view, value>>& metadata() const { return metadata_; }

  /// Typed access; any integer type that holds the number is accepted.
  /// @returns `corrupt` naming the key if it is missing or of another type
  result<std::uint64_t> unsigned_value(std::string_view key) const;
  result<double> float_value(std::string_view key) const;
  result<std::string_view> string_value(std::string_view key) const;
  result<bool> bool_value(std::string_view key) const;

  /// Typed access to arrays: strings as views into the file, integers of any type widened, floats of either
  /// size.
  /// @returns `corrupt` naming the key if it is missing or of another type
  result<std::span<const std::string_view>> strings(std::string_view key) const;
  result<std::vector<std::int64_t>> integers(std::string_view key) const;
  result<std::vector<float>> floats(std::string_view key) const;

  const std::vector<tensor>& tensors() const { return tensors_; }
  /// The tensor of a name, or nullptr.
  const tensor* find_tensor(std::string_view name) const;

  /// Tells the kernel that the pages of this tensor are not needed any more (after repacking), so that
  /// resident memory falls; reading it again stays valid.
  void forget(const tensor& which) const;

 private:
  friend class parser;

  file() = default;

  std::span<const std::byte> bytes_;
  bool mapped_ = false;
  std::uint32_t version_ = 0;
  std::vector<std::pair<std::string_view, value>> metadata_;
  std::vector<tensor> tensors_;
  // Indices in the order of names: unlike hash tables, no choice of names makes these slow.
  std::vector<std::uint32_t> keys_;
  std::vector<std::uint32_t> names_;
};

} // namespace godwit::gguf
