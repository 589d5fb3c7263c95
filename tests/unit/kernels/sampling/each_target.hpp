#pragma once

#include <catch2/catch.hpp>
#include <hwy/targets.h>

#include <cstdint>

namespace godwit {

/// Lets only one of the machine's instruction sets be used, until it goes.
class forced_target {
 public:
  explicit forced_target(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  ~forced_target() {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  forced_target(const forced_target&) = delete;
  forced_target& operator=(const forced_target&) = delete;
};

/// Calls `check` once for each of the machine's instruction sets.
template <class Check>
void on_each_target(Check check) {
  auto targets = hwy::SupportedTargets();
  for (std::int64_t target = 1; targets != 0; target <<= 1) {
    if ((targets & target) == 0)
      continue;
    targets &= ~target;
    const forced_target forced(target);
    CAPTURE(hwy::TargetName(target));
    check();
  }
}

} // namespace godwit
