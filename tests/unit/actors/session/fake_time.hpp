#pragma once

#include "actors/session/time_source.hpp"

namespace godwit {

/// A clock that stands still until it is told to go.
struct fake_time final : time_source {
  std::int64_t wall = 1'000'000'000;
  std::int64_t steady = 0;
  std::int64_t wall_ms() const override { return wall; }
  std::int64_t steady_ms() const override { return steady; }
  void pass(std::int64_t milliseconds) {
    wall += milliseconds;
    steady += milliseconds;
  }
};

} // namespace godwit
