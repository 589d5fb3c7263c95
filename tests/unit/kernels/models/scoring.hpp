#pragma once

// How far logits are from golden ones.

#include "messages/ids.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace godwit {

struct comparison {
  double worst = 0;
  std::size_t clear = 0; ///< rows whose two best golden logits differ by more than 0.5
  std::size_t other = 0; ///< those of them whose best token is another one

  /// @param top `[[id, logit], …]`, the best first
  void add(std::span<const float> row, const nlohmann::json& top) {
    for (const auto& entry : top) {
      worst = std::max(worst, std::abs(row[entry[0].get<std::size_t>()] - entry[1].get<double>()));
    }
    if (top[0][1].get<double>() - top[1][1].get<double>() > 0.5) {
      ++clear;
      other += std::ranges::max_element(row) - row.begin() != top[0][0].get<std::ptrdiff_t>();
    }
  }
};

/// The negative logarithm of a token's probability.
inline double loss(std::span<const float> logits, token_id next) {
  const double greatest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(logit - greatest);
  }
  return greatest + std::log(sum) - logits[next];
}

} // namespace godwit
