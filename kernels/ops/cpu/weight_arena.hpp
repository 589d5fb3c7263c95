#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace godwit::ops::cpu {

/// Memory for weights, in huge pages where the system has them. Matrices of a small model are smaller than
/// such a page, so they stand one behind the other: with a translation for every 4 KiB a step reads its
/// weights a fifth slower. Nothing is given back before all of it is.
class weight_arena {
 public:
  weight_arena() = default;
  ~weight_arena();
  weight_arena(const weight_arena&) = delete;
  weight_arena& operator=(const weight_arena&) = delete;

  /// Zeroed bytes at a 64-byte boundary, which become resident when they are touched. Throws std::bad_alloc.
  /// Not for several threads at once.
  std::span<std::byte> take(std::size_t bytes);

 private:
  std::vector<std::span<std::byte>> chunks_; ///< as they were mapped
  std::span<std::byte> left_;                ///< of the last one
};

} // namespace godwit::ops::cpu
