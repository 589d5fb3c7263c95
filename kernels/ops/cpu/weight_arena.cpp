#include "kernels/ops/cpu/weight_arena.hpp"

#include "kernels/threads/numa.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <new>

namespace godwit::ops::cpu {

namespace {

constexpr std::size_t huge = std::size_t{2} << 20;
/// Address space that is taken at a time; memory only as it is used.
constexpr std::size_t chunk = std::size_t{64} << 20;

constexpr std::size_t rounded(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

} // namespace

weight_arena::~weight_arena() {
  for (const auto mapped : chunks_) {
    ::munmap(mapped.data(), mapped.size());
  }
}

std::span<std::byte> weight_arena::take(std::size_t bytes) {
  const std::size_t needed = rounded(bytes, 64);
  if (needed > left_.size()) {
    // One huge page more than that, so that it can begin at the boundary of one.
    const std::size_t size = rounded(std::max(needed, chunk), huge) + huge;
    chunks_.reserve(chunks_.size() + 1);
    void* const start =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) {
      throw std::bad_alloc{};
    }
    chunks_.push_back({static_cast<std::byte*>(start), size});
    const std::size_t skipped =
      rounded(reinterpret_cast<std::uintptr_t>(start), huge) - reinterpret_cast<std::uintptr_t>(start);
    left_ = chunks_.back().subspan(skipped, size - huge);
    // Advice only: without huge pages everything works, with more misses.
    static_cast<void>(::madvise(left_.data(), left_.size(), MADV_HUGEPAGE));
    spread_memory(left_, numa_nodes());
  }
  const auto taken = left_.first(bytes);
  left_ = left_.subspan(needed);
  return taken;
}

} // namespace godwit::ops::cpu
