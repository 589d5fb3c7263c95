#pragma once

#include <cstddef>

/// The three loops that the reference spends its time in. Each result is a plain ascending sum; several are
/// computed side by side, so that wider registers help without changing a bit.
namespace godwit::ops::reference {

/// Rows that are multiplied side by side.
inline constexpr std::size_t row_group = 16;

struct loops {
  /// sums[r] = Σ weights[i] * in[i][r], i ascending
  /// @param in `[width][row_group]`
  void (*multiply)(const double* weights, const double* in, std::size_t width, double* sums);
  /// scores[j] = Σ query[d] * keys[d][j], d ascending, for the positions of one page
  void (*score)(const double* query, const float* keys, std::size_t head_dim, double* scores);
  /// sums[d] += weights[j] * values[j][d], j ascending
  void (*add)(
    const double* weights, const float* values, std::size_t count, std::size_t head_dim, double* sums);
};

/// The loops for the widest registers of this machine. All give the same bits: nothing is fused or reordered.
loops loops_here();

} // namespace godwit::ops::reference
