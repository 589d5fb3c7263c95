#pragma once

// Quantised blocks as they lie in a model file (ggml's ggml-common.h). Scales `d`, `m`, `dmin` are IEEE
// halves. Blocks have no alignment beyond two bytes' and may be read in place from a file.

#include <cstdint>

namespace godwit {

inline constexpr int small_block = 32;  ///< elements of a block of the types without K
inline constexpr int super_block = 256; ///< elements of a block of the K types

/// x = d * (q - 8). Byte i holds q of element i in its low and of element i + 16 in its high half.
struct block_q4_0 {
  std::uint16_t d;
  std::uint8_t qs[16];
};
static_assert(sizeof(block_q4_0) == 18);

/// x = d * q + m; q as in Q4_0.
struct block_q4_1 {
  std::uint16_t d;
  std::uint16_t m;
  std::uint8_t qs[16];
};
static_assert(sizeof(block_q4_1) == 20);

/// x = d * (q - 16). Low four bits as in Q4_0; bit i of the little-endian word `qh` is element i's fifth.
struct block_q5_0 {
  std::uint16_t d;
  std::uint8_t qh[4];
  std::uint8_t qs[16];
};
static_assert(sizeof(block_q5_0) == 22);

/// x = d * q + m; q as in Q5_0.
struct block_q5_1 {
  std::uint16_t d;
  std::uint16_t m;
  std::uint8_t qh[4];
  std::uint8_t qs[16];
};
static_assert(sizeof(block_q5_1) == 24);

/// x = d * q.
struct block_q8_0 {
  std::uint16_t d;
  std::int8_t qs[32];
};
static_assert(sizeof(block_q8_0) == 34);

/// Eight sub-blocks of 32: x = d * scale[s] * q - dmin * min[s], scales and minima of six bits. Byte
/// 32 * (s / 2) + i holds q of element i of sub-block s, low half for even s.
struct block_q4_k {
  std::uint16_t d;
  std::uint16_t dmin;
  std::uint8_t scales[12];
  std::uint8_t qs[128];
};
static_assert(sizeof(block_q4_k) == 144);

/// As Q4_K, with a fifth bit: bit s of qh[i] is that of element i of sub-block s.
struct block_q5_k {
  std::uint16_t d;
  std::uint16_t dmin;
  std::uint8_t scales[12];
  std::uint8_t qh[32];
  std::uint8_t qs[128];
};
static_assert(sizeof(block_q5_k) == 176);

/// Sixteen sub-blocks of 16: x = d * scale[s] * (q - 32). For element e = 128 h + 32 k + i (h < 2, k < 4):
/// the low four bits are in ql[64 h + 32 (k % 2) + i], its half k / 2; the high two are bits 2 k of
/// qh[32 h + i].
struct block_q6_k {
  std::uint8_t ql[128];
  std::uint8_t qh[64];
  std::int8_t scales[16];
  std::uint16_t d;
};
static_assert(sizeof(block_q6_k) == 210);

/// Scale and minimum of a sub-block of Q4_K and Q5_K.
struct k_scale {
  std::uint8_t scale;
  std::uint8_t minimum;
};

/// Unpacks the six-bit pair of sub-block `s` < 8: the first four lie in the low bits of bytes s and s + 4;
/// the others have four bits in the halves of byte s + 4 and two in the high bits of bytes s - 4 and s.
constexpr k_scale unpack_k_scale(const std::uint8_t (&scales)[12], int s) {
  if (s < 4)
    return {static_cast<std::uint8_t>(scales[s] & 63), static_cast<std::uint8_t>(scales[s + 4] & 63)};
  return {static_cast<std::uint8_t>((scales[s + 4] & 15) | (scales[s - 4] >> 6 << 4)),
    static_cast<std::uint8_t>((scales[s + 4] >> 4) | (scales[s] >> 6 << 4))};
}

} // namespace godwit
