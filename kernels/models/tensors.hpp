#pragma once

#include "kernels/gguf/file.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace godwit {

/// Takes a model's tensors out of a file by name and shape, and knows which ones nobody asked for: a weight
/// that a graph does not use would change its results in silence.
class tensor_set {
 public:
  explicit tensor_set(const gguf::file& file) : file_{file} {}

  /// @param shape innermost dimension first
  /// @returns `corrupt` naming the tensor if it is missing or of another shape
  result<const gguf::tensor*> take(const std::string& name, const std::vector<std::uint64_t>& shape);

  bool has(std::string_view name) const { return file_.find_tensor(name) != nullptr; }

  /// @returns `unsupported` naming a tensor that was not taken
  result<void> nothing_left() const;

 private:
  const gguf::file& file_;
  std::set<std::string, std::less<>> taken_;
};

} // namespace godwit
