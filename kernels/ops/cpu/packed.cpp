#include "kernels/ops/cpu/packed.hpp"

#include "kernels/quant/blocks.hpp"
#include "kernels/quant/half.hpp"
#include "messages/check.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace godwit::ops::cpu {

namespace {

/// 32 weights of one output, ready to be spread over a tile.
struct packed_block {
  std::array<std::uint8_t, 32> quants; ///< as they are stored; two to a byte in 4-bit formats
  std::array<float, 2> wide;           ///< coefficients of formats with f32 ones
  std::array<std::uint16_t, 2> narrow; ///< and of those with f16 ones
};

std::uint8_t nibble(const std::uint8_t* bytes, std::size_t element) {
  return element < 16 ? bytes[element] & 15U : bytes[element - 16] >> 4U;
}

std::uint8_t fifth_bit(const std::uint8_t* bits, std::size_t element) {
  return static_cast<std::uint8_t>((bits[element / 8] >> (element % 8) & 1U) << 4U);
}

// One function for each type of the file. `part` counts blocks of 32 inside a block of the file.
void read(const block_q4_0& from, std::size_t, packed_block& to) {
  std::memcpy(to.quants.data(), from.qs, sizeof from.qs);
  to.narrow[0] = from.d;
}

void read(const block_q4_1& from, std::size_t, packed_block& to) {
  std::memcpy(to.quants.data(), from.qs, sizeof from.qs);
  to.narrow = {from.d, from.m};
}

void read(const block_q5_0& from, std::size_t, packed_block& to) {
  for (std::size_t i = 0; i < 32; ++i) {
    to.quants[i] = nibble(from.qs, i) | fifth_bit(from.qh, i);
  }
  to.narrow[0] = from.d;
}

void read(const block_q5_1& from, std::size_t, packed_block& to) {
  for (std::size_t i = 0; i < 32; ++i) {
    to.quants[i] = nibble(from.qs, i) | fifth_bit(from.qh, i);
  }
  to.narrow = {from.d, from.m};
}

void read(const block_q8_0& from, std::size_t, packed_block& to) {
  for (std::size_t i = 0; i < 32; ++i) {
    to.quants[i] = static_cast<std::uint8_t>(from.qs[i] + 128);
  }
  to.narrow[0] = from.d;
}

/// The products with six-bit scales are exact in a float.
template <class Block>
std::array<float, 2> k_coefficients(const Block& from, std::size_t part) {
  const k_scale pair = unpack_k_scale(from.scales, static_cast<int>(part));
  return {half_to_float(from.d) * pair.scale, -(half_to_float(from.dmin) * pair.minimum)};
}

void read(const block_q4_k& from, std::size_t part, packed_block& to) {
  const std::uint8_t* const bytes = from.qs + part / 2 * 32;
  for (std::size_t i = 0; i < 16; ++i) {
    const auto low = part % 2 == 0 ? bytes[i] & 15U : bytes[i] >> 4U;
    const auto high = part % 2 == 0 ? bytes[i + 16] & 15U : bytes[i + 16] >> 4U;
    to.quants[i] = static_cast<std::uint8_t>(low | high << 4U);
  }
  to.wide = k_coefficients(from, part);
}

void read(const block_q5_k& from, std::size_t part, packed_block& to) {
  const std::uint8_t* const bytes = from.qs + part / 2 * 32;
  for (std::size_t i = 0; i < 32; ++i) {
    const auto low = part % 2 == 0 ? bytes[i] & 15U : bytes[i] >> 4U;
    to.quants[i] = static_cast<std::uint8_t>(low | (from.qh[i] >> part & 1U) << 4U);
  }
  to.wide = k_coefficients(from, part);
}

void read(const block_q6_k& from, std::size_t part, packed_block& to) {
  const std::size_t h = part / 4;
  const std::size_t k = part % 4;
  for (std::size_t i = 0; i < 32; ++i) {
    const std::uint8_t byte = from.ql[64 * h + 32 * (k % 2) + i];
    const auto low = k < 2 ? byte & 15U : byte >> 4U;
    const auto high = from.qh[32 * h + i] >> (2 * k) & 3U;
    to.quants[i] = static_cast<std::uint8_t>(low | high << 4U);
  }
  const float d = half_to_float(from.d);
  to.wide = {d * from.scales[2 * part], d * from.scales[2 * part + 1]};
}

/// Spreads the weights of one output over its block of a tile. @param to the output's first byte
void put_quants(const std::array<std::uint8_t, 32>& quants, std::size_t bits, std::byte* to) {
  constexpr std::size_t group = tile_outputs * 4;
  if (bits == 4 || bits == 8) {
    for (std::size_t g = 0; g < bits; ++g) {
      std::memcpy(to + g * group, quants.data() + g * 4, 4);
    }
    return;
  }
  std::array<std::uint8_t, 16> low;
  std::array<std::uint8_t, 8> high{}; // one plane of 4 bytes, or two
  for (std::size_t i = 0; i < 16; ++i) {
    low[i] = static_cast<std::uint8_t>((quants[i] & 15U) | (quants[i + 16] & 15U) << 4U);
  }
  for (std::size_t i = 0; i < 32; ++i) {
    const std::size_t g = i / 4;
    auto& byte = high[(bits == 6 ? g / 4 * 4 : 0) + i % 4];
    byte = static_cast<std::uint8_t>(byte | quants[i] >> 4U << (bits == 6 ? g % 4 * 2 : g));
  }
  for (std::size_t g = 0; g < 4; ++g) {
    std::memcpy(to + g * group, low.data() + g * 4, 4);
  }
  for (std::size_t plane = 0; plane < bits - 4; ++plane) {
    std::memcpy(to + (4 + plane) * group, high.data() + plane * 4, 4);
  }
}

/// The stored weight of an input. @param from as for put_quants
unsigned quant_at(const std::byte* from, std::size_t bits, std::size_t input) {
  constexpr std::size_t group = tile_outputs * 4;
  const std::size_t g = input / 4;
  const auto byte = [&](std::size_t which) {
    return std::to_integer<unsigned>(from[which * group + input % 4]);
  };
  if (bits == 8) {
    return byte(g);
  }
  const unsigned low = g < 4 ? byte(g) & 15U : byte(g - 4) >> 4U;
  switch (bits) {
  case 5:
    return low | (byte(4) >> g & 1U) << 4U;
  case 6:
    return low | (byte(4 + g / 4) >> (g % 4 * 2) & 3U) << 4U;
  default:
    return low;
  }
}

template <class Block, std::size_t Elements>
void pack_quantised(const gguf::tensor& from, std::size_t tile, weight_format format, std::byte* packed) {
  const format_traits form = traits(format);
  const std::size_t first = tile * tile_outputs;
  const std::size_t last = std::min<std::size_t>(first + tile_outputs, from.rows());
  constexpr std::size_t parts = Elements / block_inputs;
  const std::size_t blocks = from.columns() / block_inputs;
  packed_block unpacked{};
  Block block;
  for (std::size_t output = first; output < last; ++output) {
    const std::size_t lane = output - first;
    const std::byte* row = from.data.data() + output * from.row_bytes();
    for (std::size_t b = 0; b < blocks; ++b) {
      if (b % parts == 0) {
        std::memcpy(&block, row, sizeof block);
        row += sizeof block;
      }
      read(block, b % parts, unpacked);
      put_quants(unpacked.quants, form.bits, packed + b * form.block_stride() + lane * 4);
      for (std::size_t c = 0; c < form.coefficients; ++c) {
        std::byte* const at = packed + b * form.block_stride() + form.block_bytes()
                              + (c * tile_outputs + lane) * form.coefficient_bytes;
        if (form.coefficient_bytes == 2) {
          std::memcpy(at, &unpacked.narrow[c], 2);
        } else {
          std::memcpy(at, &unpacked.wide[c], 4);
        }
      }
    }
  }
}

void pack_floats(const gguf::tensor& from, std::size_t tile, std::size_t element, std::byte* to) {
  const std::size_t first = tile * tile_outputs;
  const std::size_t last = std::min<std::size_t>(first + tile_outputs, from.rows());
  for (std::size_t output = first; output < last; ++output) {
    const std::byte* const row = from.data.data() + output * from.row_bytes();
    for (std::size_t i = 0; i < from.columns(); ++i) {
      std::memcpy(to + (i * tile_outputs + output - first) * element, row + i * element, element);
    }
  }
}

template <class T>
T read_as(const std::byte* from, std::size_t index) {
  T value;
  std::memcpy(&value, from + index * sizeof(T), sizeof value);
  return value;
}

} // namespace

weight_format packed_part::format_for(gguf::tensor_type type) {
  using gguf::tensor_type;
  switch (type) {
  case tensor_type::f32:
    return weight_format::f32;
  case tensor_type::f16:
    return weight_format::f16;
  case tensor_type::bf16:
    return weight_format::bf16;
  case tensor_type::q4_0:
    return weight_format::q4_signed;
  case tensor_type::q4_1:
    return weight_format::q4_min;
  case tensor_type::q5_0:
    return weight_format::q5_signed;
  case tensor_type::q5_1:
    return weight_format::q5_min;
  case tensor_type::q8_0:
    return weight_format::q8;
  case tensor_type::q4_k:
    return weight_format::q4_min_wide;
  case tensor_type::q5_k:
    return weight_format::q5_min_wide;
  case tensor_type::q6_k:
    return weight_format::q6_half;
  }
  GODWIT_CHECK(false && "a tensor type that the file reader lets through");
  return weight_format::f32;
}

packed_part::packed_part(weight_format format, std::size_t outputs, std::size_t inputs)
  : format_{format}, outputs_{outputs}, inputs_{inputs}, tile_bytes_{bytes_for(format, 1, inputs)},
    data_{tiles() * tile_bytes_}, room_{data_.data(), data_.size()}, bytes_{room_} {}

packed_part::packed_part(weight_format format, std::size_t outputs, std::size_t inputs, weight_arena& arena)
  : format_{format}, outputs_{outputs}, inputs_{inputs}, tile_bytes_{bytes_for(format, 1, inputs)},
    room_{arena.take(tiles() * tile_bytes_)}, bytes_{room_} {}

packed_part::packed_part(
  weight_format format, std::size_t outputs, std::size_t inputs, std::span<const std::byte> packed)
  : format_{format}, outputs_{outputs}, inputs_{inputs}, tile_bytes_{bytes_for(format, 1, inputs)},
    bytes_{packed} {
  GODWIT_CHECK(packed.size() == tiles() * tile_bytes_);
}

std::size_t packed_part::bytes_for(weight_format format, std::size_t outputs, std::size_t inputs) {
  const format_traits form = traits(format);
  const std::size_t content =
    form.quantised ? inputs / block_inputs * form.block_stride() : inputs * tile_outputs * form.bits / 8;
  return (outputs + tile_outputs - 1) / tile_outputs * ((content + 63) / 64 * 64);
}

void packed_part::pack(const gguf::tensor& from, std::size_t tile) {
  GODWIT_CHECK(from.rows() == outputs_ && from.columns() == inputs_ && format_for(from.type) == format_);
  GODWIT_CHECK(!room_.empty());
  std::byte* const to = room_.data() + tile * tile_bytes_;
  using gguf::tensor_type;
  switch (from.type) {
  case tensor_type::f32:
    return pack_floats(from, tile, 4, to);
  case tensor_type::f16:
  case tensor_type::bf16:
    return pack_floats(from, tile, 2, to);
  case tensor_type::q4_0:
    return pack_quantised<block_q4_0, 32>(from, tile, format_, to);
  case tensor_type::q4_1:
    return pack_quantised<block_q4_1, 32>(from, tile, format_, to);
  case tensor_type::q5_0:
    return pack_quantised<block_q5_0, 32>(from, tile, format_, to);
  case tensor_type::q5_1:
    return pack_quantised<block_q5_1, 32>(from, tile, format_, to);
  case tensor_type::q8_0:
    return pack_quantised<block_q8_0, 32>(from, tile, format_, to);
  case tensor_type::q4_k:
    return pack_quantised<block_q4_k, 256>(from, tile, format_, to);
  case tensor_type::q5_k:
    return pack_quantised<block_q5_k, 256>(from, tile, format_, to);
  case tensor_type::q6_k:
    return pack_quantised<block_q6_k, 256>(from, tile, format_, to);
  }
}

void packed_part::unpack(std::size_t output, std::span<float> values) const {
  GODWIT_CHECK(output < outputs_ && values.size() == inputs_);
  const format_traits form = traits(format_);
  const std::size_t index = output / tile_outputs;
  const std::size_t lane = output % tile_outputs;
  const std::byte* const weights = tile(index);
  if (!form.quantised) {
    for (std::size_t i = 0; i < inputs_; ++i) {
      const std::size_t at = i * tile_outputs + lane;
      values[i] = format_ == weight_format::f32   ? read_as<float>(weights, at)
                  : format_ == weight_format::f16 ? half_to_float(read_as<std::uint16_t>(weights, at))
                                                  : bf16_to_float(read_as<std::uint16_t>(weights, at));
    }
    return;
  }
  const bool halves = format_ == weight_format::q6_half;
  for (std::size_t b = 0; b < blocks(); ++b) {
    const std::byte* const block = weights + b * form.block_stride();
    const std::byte* const own = block + form.block_bytes();
    const auto coefficient = [&](std::size_t which) {
      const std::size_t at = which * tile_outputs + lane;
      return form.coefficient_bytes == 2 ? half_to_float(read_as<std::uint16_t>(own, at))
                                         : read_as<float>(own, at);
    };
    const double minimum = form.coefficients == 2 && !halves ? coefficient(1) : 0.0F;
    for (std::size_t i = 0; i < block_inputs; ++i) {
      const int quant = static_cast<int>(quant_at(block + lane * 4, form.bits, i)) - form.offset;
      const double scale = coefficient(halves && i >= 16 ? 1 : 0);
      // In a double product and sum are exact for all formats, so that this rounds once.
      values[b * block_inputs + i] = static_cast<float>(scale * quant + minimum);
    }
  }
}

} // namespace godwit::ops::cpu
