#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace godwit::test {

/// Waits for something that another thread does. @returns whether it came true in time
inline bool eventually(std::chrono::milliseconds within, const std::function<bool()>& what) {
  const auto end = std::chrono::steady_clock::now() + within;
  while (!what()) {
    if (std::chrono::steady_clock::now() > end)
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

} // namespace godwit::test
