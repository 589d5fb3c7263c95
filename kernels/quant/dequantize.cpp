#include "kernels/quant/dequantize.hpp"

#include "kernels/quant/blocks.hpp"
#include "kernels/quant/half.hpp"
#include "messages/check.hpp"

#include <cstring>

namespace godwit {
namespace {

// `Real` is float or double; scales are converted to it first, so that all that follows is computed in it.

template <class Real>
Real scale_of(std::uint16_t half) {
  return static_cast<Real>(half_to_float(half));
}

/// Bit `i` of a little-endian word, moved to the place of the fifth bit.
int fifth_bit(const std::uint8_t (&qh)[4], int i) {
  return (qh[i / 8] >> (i % 8) & 1) << 4;
}

template <class Real>
void unpack(const block_q4_0& block, Real* out) {
  const auto d = scale_of<Real>(block.d);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<Real>((block.qs[i] & 15) - 8);
    out[i + 16] = d * static_cast<Real>((block.qs[i] >> 4) - 8);
  }
}

template <class Real>
void unpack(const block_q4_1& block, Real* out) {
  const auto d = scale_of<Real>(block.d);
  const auto m = scale_of<Real>(block.m);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<Real>(block.qs[i] & 15) + m;
    out[i + 16] = d * static_cast<Real>(block.qs[i] >> 4) + m;
  }
}

template <class Real>
void unpack(const block_q5_0& block, Real* out) {
  const auto d = scale_of<Real>(block.d);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<Real>(((block.qs[i] & 15) | fifth_bit(block.qh, i)) - 16);
    out[i + 16] = d * static_cast<Real>((block.qs[i] >> 4 | fifth_bit(block.qh, i + 16)) - 16);
  }
}

template <class Real>
void unpack(const block_q5_1& block, Real* out) {
  const auto d = scale_of<Real>(block.d);
  const auto m = scale_of<Real>(block.m);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<Real>((block.qs[i] & 15) | fifth_bit(block.qh, i)) + m;
    out[i + 16] = d * static_cast<Real>(block.qs[i] >> 4 | fifth_bit(block.qh, i + 16)) + m;
  }
}

template <class Real>
void unpack(const block_q8_0& block, Real* out) {
  const auto d = scale_of<Real>(block.d);
  for (int i = 0; i < small_block; ++i)
    out[i] = d * static_cast<Real>(block.qs[i]);
}

template <class Real>
void unpack(const block_q4_k& block, Real* out) {
  const auto d = scale_of<Real>(block.d);
  const auto dmin = scale_of<Real>(block.dmin);
  for (int s = 0; s < 8; ++s) {
    const auto pair = unpack_k_scale(block.scales, s);
    const auto scale = d * static_cast<Real>(pair.scale);
    const auto minimum = dmin * static_cast<Real>(pair.minimum);
    for (int i = 0; i < 32; ++i) {
      const int q = block.qs[32 * (s / 2) + i] >> (s % 2 * 4) & 15;
      out[32 * s + i] = scale * static_cast<Real>(q) - minimum;
    }
  }
}

template <class Real>
void unpack(const block_q5_k& block, Real* out) {
  const auto d = scale_of<Real>(block.d);
  const auto dmin = scale_of<Real>(block.dmin);
  for (int s = 0; s < 8; ++s) {
    const auto pair = unpack_k_scale(block.scales, s);
    const auto scale = d * static_cast<Real>(pair.scale);
    const auto minimum = dmin * static_cast<Real>(pair.minimum);
    for (int i = 0; i < 32; ++i) {
      const int low = block.qs[32 * (s / 2) + i] >> (s % 2 * 4) & 15;
      const int high = (block.qh[i] >> s & 1) << 4;
      out[32 * s + i] = scale * static_cast<Real>(low | high) - minimum;
    }
  }
}

template <class Real>
void unpack(const block_q6_k& block, Real* out) {
  const auto d = scale_of<Real>(block.d);
  for (int e = 0; e < super_block; ++e) {
    const int h = e / 128;
    const int k = e / 32 % 4;
    const int i = e % 32;
    const int low = block.ql[64 * h + 32 * (k % 2) + i] >> (k / 2 * 4) & 15;
    const int high = (block.qh[32 * h + i] >> (2 * k) & 3) << 4;
    out[e] = d * static_cast<Real>(block.scales[e / 16]) * static_cast<Real>((low | high) - 32);
  }
}

template <class Block, class Real>
void unpack_all(std::span<const std::byte> bytes, Real* out, std::size_t elements) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(Block), out += elements) {
    Block block;
    std::memcpy(&block, bytes.data() + at, sizeof block);
    unpack(block, out);
  }
}

template <class Stored, class Real, class Convert>
void convert_all(std::span<const std::byte> bytes, Real* out, Convert convert) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(Stored), ++out) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + at, sizeof stored);
    *out = static_cast<Real>(convert(stored));
  }
}

template <class Real>
void dequantize(gguf::tensor_type type, std::span<const std::byte> bytes, Real* out, std::size_t n) {
  using gguf::tensor_type;
  const auto elements = gguf::block_elements(type);
  GODWIT_CHECK(n % elements == 0 && bytes.size() == n / elements * gguf::block_bytes(type));
  switch (type) {
  case tensor_type::f32:
    return convert_all<float>(bytes, out, [](float number) { return number; });
  case tensor_type::f16:
    return convert_all<std::uint16_t>(bytes, out, half_to_float);
  case tensor_type::bf16:
    return convert_all<std::uint16_t>(bytes, out, bf16_to_float);
  case tensor_type::q4_0:
    return unpack_all<block_q4_0>(bytes, out, elements);
  case tensor_type::q4_1:
    return unpack_all<block_q4_1>(bytes, out, elements);
  case tensor_type::q5_0:
    return unpack_all<block_q5_0>(bytes, out, elements);
  case tensor_type::q5_1:
    return unpack_all<block_q5_1>(bytes, out, elements);
  case tensor_type::q8_0:
    return unpack_all<block_q8_0>(bytes, out, elements);
  case tensor_type::q4_k:
    return unpack_all<block_q4_k>(bytes, out, elements);
  case tensor_type::q5_k:
    return unpack_all<block_q5_k>(bytes, out, elements);
  case tensor_type::q6_k:
    return unpack_all<block_q6_k>(bytes, out, elements);
  }
  GODWIT_CHECK(false);
}

} // namespace

void dequantize_row(gguf::tensor_type type, std::span<const std::byte> bytes, float* out, std::size_t n) {
  dequantize(type, bytes, out, n);
}

void dequantize_row(gguf::tensor_type type, std::span<const std::byte> bytes, double* out, std::size_t n) {
  dequantize(type, bytes, out, n);
}

} // namespace godwit
