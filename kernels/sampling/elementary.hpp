#pragma once

// exp and log as fixed sequences of IEEE additions, multiplications and divisions: the C library's differ
// between machines. Who includes this compiles with -ffp-contract=off.

#include <bit>
#include <cstdint>

namespace godwit {

/// e^x for x <= 0, to a relative error below 2e-7; exactly 1 at 0, and 0 below -87, where floats end.
/// Reduction to |r| <= ln(2) / 2 in two parts and the polynomial of Cephes' expf (Moshier). Without branches,
/// so that loops over it become vector code with the same bits.
constexpr float exp_nonpositive(float x) {
  const float kept = x < -87.0F ? -87.0F : x;
  // Adding 1.5 * 2^23 leaves the nearest integer in the last bits.
  constexpr float shift = 12582912.0F;
  const float shifted = kept * 1.44269504088896341F + shift;
  const float n = shifted - shift;
  float r = kept - n * 0.693359375F;
  r = r - n * -2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + r;
  p = p + 1.0F;
  const auto power = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(shift) + 127U;
  const float result = p * std::bit_cast<float>(power << 23);
  return x < -87.0F ? 0.0F : result;
}

/// The natural logarithm of a normal number above 0, to a relative error below 1e-15. With x = 2^k m and m
/// near 1, ln m = 2 artanh((m - 1) / (m + 1)) by its series.
constexpr double natural_log(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  // Subtracting the bits of sqrt(1/2) makes the exponent that of the nearest power of two in that sense.
  constexpr std::uint64_t root = 0x3fe6a09e667f3bcdULL;
  const auto k = static_cast<std::int64_t>(bits - root) >> 52;
  const double m = std::bit_cast<double>(bits - (static_cast<std::uint64_t>(k) << 52));
  const double s = (m - 1.0) / (m + 1.0);
  const double square = s * s;
  double sum = 0.0;
  for (int i = 21; i > 0; i -= 2)
    sum = sum * square + 2.0 / i;
  // ln 2 in two parts: the first has zeros at its end, so that its product with k is exact.
  return static_cast<double>(k) * 0x1.62e42fefa3800p-1
         + (sum * s + static_cast<double>(k) * 0x1.ef35793c76730p-45);
}

} // namespace godwit
