#pragma once

#include "messages/ids.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace godwit::ops {

/// Sine and cosine by polynomials (fdlibm's, with its reduction by pi/2), so that every machine has the same
/// bits. Absolute error below 1e-15.
/// @pre |angle| < 2^20
struct turn {
  double cosine;
  double sine;
};
turn turn_by(double angle);

/// base^(-2i / rotary) for i < rotary / 2: radians for each position (Su et al., RoFormer).
std::vector<double> rope_frequencies(std::uint32_t rotary, double base);

} // namespace godwit::ops
