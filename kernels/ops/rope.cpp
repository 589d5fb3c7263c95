#include "kernels/ops/rope.hpp"

#include "kernels/sampling/elementary.hpp"

#include <algorithm>
#include <cmath>

namespace godwit::ops {

turn turn_by(double angle) {
  // The nearest multiple of pi/2: its first 33 bits times a 20-bit number are exact, the rest is subtracted
  // after.
  const double n = std::nearbyint(angle * 0.63661977236758134308);
  const double r = (angle - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11;
  const double z = r * r;

  double s = 1.58969099521155010221e-10;
  s = s * z - 2.50507602534068634195e-08;
  s = s * z + 2.75573137070700676789e-06;
  s = s * z - 1.98412698298579493134e-04;
  s = s * z + 8.33333333332248946124e-03;
  s = s * z - 1.66666666666666324348e-01;
  const double sine = r + r * z * s;

  double c = -1.13596475577881948265e-11;
  c = c * z + 2.08757232129817482790e-09;
  c = c * z - 2.75573143513906633035e-07;
  c = c * z + 2.48015872894767294178e-05;
  c = c * z - 1.38888888888741095749e-03;
  c = c * z + 4.16666666666666019037e-02;
  const double cosine = 1.0 - (0.5 * z - z * z * c);

  switch (static_cast<std::int64_t>(n) & 3) {
  case 0:
    return {cosine, sine};
  case 1:
    return {-sine, cosine};
  case 2:
    return {-cosine, -sine};
  default:
    return {sine, -cosine};
  }
}

namespace {

/// e^x, to a relative error below 1e-15: x = k ln 2 + r with |r| <= ln(2) / 2, and Taylor's series of e^r.
double exponential(double x) {
  const double k = std::nearbyint(x * 1.44269504088896340736);
  const double r = (x - k * 0x1.62e42fefa3800p-1) - k * 0x1.ef35793c76730p-45;
  double sum = 1;
  for (int i = 14; i > 0; --i) {
    sum = sum * r / i + 1;
  }
  return std::ldexp(sum, static_cast<int>(k));
}

} // namespace

std::vector<double> rope_frequencies(std::uint32_t rotary, double base) {
  const double log_base = natural_log(base);
  std::vector<double> frequencies(rotary / 2);
  for (std::uint32_t i = 0; i < rotary / 2; ++i) {
    frequencies[i] = exponential(-2.0 * i / rotary * log_base);
  }
  return frequencies;
}

rope yarn_rope(std::uint32_t rotary, double base, const yarn_scaling& scaling) {
  // The pair that turns `times` over the original context.
  const auto pair = [&](double times) {
    return rotary * natural_log(scaling.original / (times * 6.28318530717958647692))
           / (2 * natural_log(base));
  };
  const double low = std::max(std::floor(pair(scaling.beta_fast)), 0.0);
  const double high = std::min(std::ceil(pair(scaling.beta_slow)), rotary - 1.0);
  rope made{rope_frequencies(rotary, base), scaling.attention * (1 + 0.1 * natural_log(scaling.factor))};
  for (std::uint32_t i = 0; i < rotary / 2; ++i) {
    const double ramp = std::clamp((i - low) / std::max(high - low, 0.001), 0.0, 1.0);
    made.frequencies[i] = made.frequencies[i] * (1 - ramp) + made.frequencies[i] / scaling.factor * ramp;
  }
  return made;
}

} // namespace godwit::ops
