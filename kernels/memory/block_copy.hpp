#pragma once

#include "kernels/memory/page_pool.hpp"

#include <cstddef>
#include <span>

namespace godwit {

/// The bytes of a block: its pages one after the other, in the order of page_pool::page(); block_bytes() of
/// them, 64-byte aligned. Whoever reads them holds a reference and knows that the block is full; whoever
/// writes is the only one that has it.
inline std::span<std::byte> block_contents(page_pool& pool, block_id block) {
  const auto bytes = pool.shape().block_bytes();
  return {reinterpret_cast<std::byte*>(pool.base()) + std::size_t{block} * bytes, bytes};
}

} // namespace godwit
