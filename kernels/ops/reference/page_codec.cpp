#include "kernels/ops/reference/page_codec.hpp"

#include "kernels/quant/half.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace godwit::ops::reference {

namespace {

constexpr float greatest_half = 65504;
constexpr float greatest_bfloat = 0x1.FEp127F;
constexpr float most_steps = 127; ///< of an integer element

/// The scale by which the numbers of one key or value are kept in eight bits.
kv_scale scale_for(const double* x, std::size_t count) {
  float greatest = 0;
  for (std::size_t d = 0; d < count; ++d) {
    const auto magnitude = std::abs(static_cast<float>(x[d]));
    if (!std::isfinite(magnitude)) {
      return float_to_half(std::numeric_limits<float>::quiet_NaN());
    }
    greatest = std::max(greatest, magnitude);
  }
  return float_to_half(std::min(greatest / most_steps, greatest_half));
}

template <kv_type Type>
typename kv_format<Type>::element rounded(double number, [[maybe_unused]] float scale) {
  const auto x = static_cast<float>(number);
  if constexpr (Type == kv_type::f32) {
    return x;
  } else if constexpr (Type == kv_type::f16) {
    return float_to_half(std::clamp(x, -greatest_half, greatest_half));
  } else if constexpr (Type == kv_type::bf16) {
    return static_cast<kv_bfloat>(float_to_bf16(std::clamp(x, -greatest_bfloat, greatest_bfloat)));
  } else {
    if (scale == 0 || std::isnan(scale)) {
      return 0;
    }
    // In the default rounding mode: to the nearest, ties to even.
    return static_cast<std::int8_t>(std::clamp(std::nearbyint(x * (1 / scale)), -most_steps, most_steps));
  }
}

template <kv_type Type>
float number(typename kv_format<Type>::element stored, [[maybe_unused]] float scale) {
  if constexpr (Type == kv_type::f32) {
    return stored;
  } else if constexpr (Type == kv_type::f16) {
    return half_to_float(stored);
  } else if constexpr (Type == kv_type::bf16) {
    return bf16_to_float(static_cast<std::uint16_t>(stored));
  } else {
    return static_cast<float>(stored) * scale; // 7 bits times 11: exact
  }
}

/// One page's parts.
template <kv_type Type, class Byte>
struct parts {
  template <class T>
  using as = std::conditional_t<std::is_const_v<Byte>, const T, T>;
  using element = typename kv_format<Type>::element;

  parts(Byte* page, std::size_t dim)
    : keys(reinterpret_cast<as<element>*>(page)),
      values(reinterpret_cast<as<element>*>(page + kv_places<Type>::values(dim))),
      key_scales(reinterpret_cast<as<kv_scale>*>(page + kv_places<Type>::key_scales(dim))),
      value_scales(reinterpret_cast<as<kv_scale>*>(page + kv_places<Type>::value_scales(dim))) {}

  as<element>* keys;
  as<element>* values;
  as<kv_scale>* key_scales; ///< not there unless the type is scaled
  as<kv_scale>* value_scales;
};

template <kv_type Type>
void store(std::size_t dim, const double* k, const double* v, std::byte* page, std::size_t slot) {
  const parts<Type, std::byte> to(page, dim);
  float key_scale = 1;
  float value_scale = 1;
  if constexpr (kv_format<Type>::scaled) {
    key_scale = half_to_float(to.key_scales[slot] = scale_for(k, dim));
    value_scale = half_to_float(to.value_scales[slot] = scale_for(v, dim));
  }
  for (std::size_t d = 0; d < dim; ++d) {
    to.keys[d * page_tokens + slot] = rounded<Type>(k[d], key_scale);
    to.values[slot * dim + d] = rounded<Type>(v[d], value_scale);
  }
}

/// Element `at(slot, d)` of each position, times the position's scale.
template <kv_type Type, class At>
const float* load(std::size_t dim, const typename kv_format<Type>::element* from,
  [[maybe_unused]] const kv_scale* scales, float* room, At&& at) {
  if constexpr (Type == kv_type::f32) {
    return from;
  }
  for (std::size_t slot = 0; slot < page_tokens; ++slot) {
    float scale = 1;
    if constexpr (kv_format<Type>::scaled) {
      scale = half_to_float(scales[slot]);
    }
    for (std::size_t d = 0; d < dim; ++d) {
      room[at(slot, d)] = number<Type>(from[at(slot, d)], scale);
    }
  }
  return room;
}

} // namespace

void store_position(
  const kv_shape& shape, const double* k, const double* v, std::byte* page, std::size_t slot) {
  with_kv_type(shape.type, [&]<kv_type Type>() { store<Type>(shape.head_dim, k, v, page, slot); });
}

const float* load_keys(const kv_shape& shape, const std::byte* page, float* room) {
  return with_kv_type(shape.type, [&]<kv_type Type>() {
    const parts<Type, const std::byte> from(page, shape.head_dim);
    return load<Type>(shape.head_dim, from.keys, from.key_scales, room,
      [](std::size_t slot, std::size_t d) { return d * page_tokens + slot; });
  });
}

const float* load_values(const kv_shape& shape, const std::byte* page, float* room) {
  return with_kv_type(shape.type, [&]<kv_type Type>() {
    const parts<Type, const std::byte> from(page, shape.head_dim);
    return load<Type>(shape.head_dim, from.values, from.value_scales, room,
      [dim = shape.head_dim](std::size_t slot, std::size_t d) { return slot * dim + d; });
  });
}

} // namespace godwit::ops::reference
