#pragma once

#include "messages/ids.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace godwit::ops {

/// Sine and cosine by polynomials (fdlibm's, with its reduction by pi/2), so that every machine has the same
/// bits. Absolute error below 1e-15.
/// @pre |angle| <= most_angle
struct turn {
  double cosine;
  double sine;
};
inline constexpr double most_angle = 0x1p20;
turn turn_by(double angle);

/// Which elements of a head turn together: an element and its neighbour, or element i of the rotary ones and
/// the one half of their number behind it.
enum class rope_pairs : std::uint8_t { neighbours, halves };

/// Rotary positions of some layers.
struct rope {
  std::vector<double> frequencies; ///< radians for each position and pair
  double magnitude = 1;            ///< of every turn

  bool operator==(const rope&) const = default;
};

/// base^(-2i / rotary) for i < rotary / 2: radians for each position (Su et al., RoFormer). By our own log
/// and exp, so that every machine has the same bits; relative error below 1e-13.
/// @pre base is a normal number above 0
std::vector<double> rope_frequencies(std::uint32_t rotary, double base);

/// Positions that were compressed after training with a context of `original` positions (Peng et al., YaRN).
struct yarn_scaling {
  double factor = 1;     ///< by how much: new context over the original one
  double original = 0;   ///< positions
  double beta_fast = 32; ///< pairs that turn more often than this over the original context stay as they are
  double beta_slow = 1;  ///< pairs that turn less often are divided by the factor; between the two a ramp
  double attention = 1;  ///< another factor of the magnitude, which is 1 + ln(factor) / 10
};

/// @pre factor >= 1, original > 0, beta_fast > beta_slow > 0
rope yarn_rope(std::uint32_t rotary, double base, const yarn_scaling& scaling);

} // namespace godwit::ops
