#include "kernels/ops/cpu/aligned_buffer.hpp"

#include <sys/mman.h>

#include <cstring>
#include <new>

namespace godwit::ops::cpu {

aligned_buffer::aligned_buffer(std::size_t bytes) : size_{bytes} {
  constexpr std::size_t huge = std::size_t{2} << 20;
  const std::size_t alignment = bytes >= 2 * huge ? huge : 64;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  bytes_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded)));
  if (bytes_ == nullptr) {
    throw std::bad_alloc{};
  }
  if (alignment == huge) {
    // Advice only: without huge pages everything works, with more misses.
    static_cast<void>(::madvise(bytes_.get(), bytes, MADV_HUGEPAGE));
  }
  std::memset(bytes_.get(), 0, bytes);
}

} // namespace godwit::ops::cpu
