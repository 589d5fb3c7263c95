#pragma once

// All that decides how keys and values lie in memory, in one place: positions of a page, types of elements,
// where they stand. What changes here has to change the version too: caches and journals of another layout
// are foreign.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace godwit {

/// Positions in one page. Part of the model fingerprint: changing it makes caches and journals foreign.
inline constexpr std::uint32_t page_tokens = 16;
/// Version of everything below; part of the fingerprint too.
inline constexpr std::uint32_t kv_layout_version = 1;

/// Pages as the pool hands them out. Types of other sizes are reached through the same pointer and
/// reinterpreted.
using kv_element = std::uint16_t;
/// The upper half of a single; a type of its own, so that none is read as an IEEE half.
enum class kv_bfloat : std::uint16_t {};
/// An IEEE half by which the integers of one position are multiplied.
using kv_scale = std::uint16_t;

/// What a page's elements are. Numbers are stored: append only.
enum class kv_type : std::uint8_t {
  f16,  ///< IEEE half precision: 11 significant bits, magnitudes up to 65504
  f32,  ///< for the `reference` ops, whose results half precision would blur
  bf16, ///< the upper half of a single: 8 significant bits, all magnitudes
  int8, ///< -127 to 127, times a scale for each position's key and value
};

/// The element of a type, and whether a scale stands beside each position's key and value.
template <kv_type Type>
struct kv_format;
template <>
struct kv_format<kv_type::f16> {
  using element = kv_element;
  static constexpr bool scaled = false;
};
template <>
struct kv_format<kv_type::f32> {
  using element = float;
  static constexpr bool scaled = false;
};
template <>
struct kv_format<kv_type::bf16> {
  using element = kv_bfloat;
  static constexpr bool scaled = false;
};
template <>
struct kv_format<kv_type::int8> {
  using element = std::int8_t;
  static constexpr bool scaled = true;
};

/// Calls `use.template operator()<Type>()` with a type that is known at run time only.
template <class Use>
constexpr decltype(auto) with_kv_type(kv_type type, Use&& use) {
  switch (type) {
  case kv_type::f32:
    return use.template operator()<kv_type::f32>();
  case kv_type::bf16:
    return use.template operator()<kv_type::bf16>();
  case kv_type::int8:
    return use.template operator()<kv_type::int8>();
  case kv_type::f16:
    break;
  }
  return use.template operator()<kv_type::f16>();
}

constexpr std::string_view to_string(kv_type type) {
  switch (type) {
  case kv_type::f16:
    return "fp16";
  case kv_type::f32:
    return "fp32";
  case kv_type::bf16:
    return "bf16";
  case kv_type::int8:
    return "int8";
  }
  return "";
}

/// The type of that name; nothing if there is none.
constexpr std::optional<kv_type> kv_type_named(std::string_view name) {
  for (const auto type : {kv_type::f16, kv_type::f32, kv_type::bf16, kv_type::int8})
    if (to_string(type) == name)
      return type;
  return std::nullopt;
}

/// Index of a page in its pool.
using page_id = std::uint32_t;
/// Index of a block in its pool.
using block_id = std::uint32_t;

/// Where the parts of one page of `Type` stand, in bytes from its start: K `[head_dim, page_tokens]`, V
/// `[page_tokens, head_dim]`, and where the type has them the scales of K and of V, `[page_tokens]` each. K
/// lies with its positions innermost, so that a vector of scores takes one product for each element of the
/// query and no sum across lanes; a scale of K is then one for each lane, and one of V one for each weight.
/// Always inlined: code for one instruction set must not end in a function that others call.
template <kv_type Type>
struct kv_places {
  [[gnu::always_inline]] static constexpr std::size_t values(std::size_t head_dim) {
    return page_tokens * head_dim * sizeof(typename kv_format<Type>::element);
  }
  [[gnu::always_inline]] static constexpr std::size_t key_scales(std::size_t head_dim) {
    return 2 * values(head_dim);
  }
  [[gnu::always_inline]] static constexpr std::size_t value_scales(std::size_t head_dim) {
    return key_scales(head_dim) + page_tokens * sizeof(kv_scale);
  }
  /// Bytes of a page: whole cache lines.
  [[gnu::always_inline]] static constexpr std::size_t end(std::size_t head_dim) {
    constexpr std::size_t line = 64;
    const std::size_t scales = kv_format<Type>::scaled ? 2 * page_tokens * sizeof(kv_scale) : 0;
    return (key_scales(head_dim) + scales + line - 1) / line * line;
  }
};

/// What a model needs of a page pool.
struct kv_shape {
  std::uint32_t layers = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  kv_type type = kv_type::f16;

  /// Numbers of one page, of one KV head of one layer; see kv_places.
  std::size_t page_elements() const { return std::size_t{2} * page_tokens * head_dim; }
  std::size_t page_bytes() const {
    return with_kv_type(type, [this]<kv_type Type>() { return kv_places<Type>::end(head_dim); });
  }
  /// One block: the pages of all layers and KV heads for the same 16 positions.
  std::uint32_t pages_per_block() const { return layers * kv_heads; }
  std::size_t block_bytes() const { return page_bytes() * pages_per_block(); }

  bool operator==(const kv_shape&) const = default;
};

} // namespace godwit
