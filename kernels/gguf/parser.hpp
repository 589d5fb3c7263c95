#pragma once

#include "kernels/gguf/file.hpp"

#include <optional>
#include <string>

namespace godwit::gguf {

/// Reads and checks the header, metadata and tensor table of a GGUF file (ggml's docs/gguf.md) into a `file`.
/// Each step returns false once something is wrong; `failure()` then says what.
class parser {
 public:
  explicit parser(file& target) : target_(target), bytes_(target.bytes_) {}

  bool run();
  error failure() const { return *failure_; }

 private:
  bool read_header();
  bool read_metadata();
  bool read_alignment();
  bool read_tensor_table();
  bool place_tensors();
  bool check_overlap();

  bool read_value(std::uint32_t type, const std::string& what, value& out);
  bool read_array(const std::string& what, value& out);
  template <class T>
  bool read_items(std::uint64_t count, const std::string& what, array& out);
  bool read_string(std::uint64_t limit, const std::string& what, std::string_view& out);
  template <class T>
  bool read(const std::string& what, T& out);

  std::size_t remaining() const { return bytes_.size() - at_; }
  bool refuse(errc code, std::string message);
  bool truncated(const std::string& what);

  file& target_;
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  std::uint64_t key_count_ = 0;
  std::uint64_t tensor_count_ = 0;
  std::uint64_t alignment_ = 32;
  std::vector<std::uint64_t> offsets_; // of the tensors, from the start of the data
  std::optional<error> failure_;
};

} // namespace godwit::gguf
