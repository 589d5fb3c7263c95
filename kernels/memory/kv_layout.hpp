#pragma once

#include <cstddef>
#include <cstdint>

namespace godwit {

/// Positions in one page. Part of the model fingerprint: changing it makes caches and journals foreign.
inline constexpr std::uint32_t page_tokens = 16;
/// Version of everything below; part of the fingerprint too.
inline constexpr std::uint32_t kv_layout_version = 1;

/// A KV element as it lies in memory: IEEE half precision. Pages of other kinds are reached through the same
/// pointer and reinterpreted.
using kv_element = std::uint16_t;

/// What a page's elements are.
enum class kv_type : std::uint8_t {
  f16,
  f32, ///< for the `reference` ops, whose results half precision would blur
};

/// Index of a page in its pool.
using page_id = std::uint32_t;
/// Index of a block in its pool.
using block_id = std::uint32_t;

/// What a model needs of a page pool.
struct kv_shape {
  std::uint32_t layers = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  kv_type type = kv_type::f16;

  /// One page: K `[head_dim, page_tokens]` and then V `[page_tokens, head_dim]` of one KV head of one layer.
  /// K lies with its positions innermost, so that a vector of scores takes one product for each element of
  /// the query and no sum across lanes.
  std::size_t page_elements() const { return std::size_t{2} * page_tokens * head_dim; }
  std::size_t element_bytes() const { return type == kv_type::f16 ? 2 : 4; }
  std::size_t page_bytes() const { return page_elements() * element_bytes(); }
  /// One block: the pages of all layers and KV heads for the same 16 positions.
  std::uint32_t pages_per_block() const { return layers * kv_heads; }
  std::size_t block_bytes() const { return page_bytes() * pages_per_block(); }

  bool operator==(const kv_shape&) const = default;
};

} // namespace godwit
