#include "kernels/threads/team_size.hpp"

#include <catch2/catch.hpp>

#include <functional>

using godwit::team_size;
using namespace std::chrono_literals;

namespace {

/// A machine on which a team of so many threads has a core for a part of the time.
class busy_machine {
 public:
  busy_machine(std::uint32_t most, std::function<double(std::uint32_t)> part)
    : size{most}, part_{std::move(part)} {}

  void become(std::function<double(std::uint32_t)> part) { part_ = std::move(part); }
  /// Runs jobs of 10 ms on a core for so long. @returns the part of the time in which `threads` worked
  double run(std::chrono::milliseconds time, std::uint32_t threads) {
    const auto end = now_ + time;
    team_size::nanoseconds with{0};
    while (now_ < end) {
      const auto used = size.now();
      const team_size::nanoseconds core = 10ms;
      const auto wall = std::chrono::duration_cast<team_size::nanoseconds>(core / part_(used));
      now_ += wall;
      with += used == threads ? wall : 0ns;
      size.ran(wall, core, now_);
    }
    return static_cast<double>(with.count()) / std::chrono::duration<double, std::nano>(time).count();
  }

  team_size size;

 private:
  std::function<double(std::uint32_t)> part_;
  team_size::clock::time_point now_{};
};

} // namespace

TEST_CASE("a team that has its cores stays whole") {
  for (const std::uint32_t most : {1U, 2U, 5U, 64U}) {
    busy_machine machine(most, [](std::uint32_t) { return 0.95; });
    CHECK(machine.run(10s, most) > 0.99);
  }
}

TEST_CASE(
  "where threads wait for each other most of the time, one works, and rarely looks whether that changed") {
  // Alone it has half a core; two of them wait until both have one.
  busy_machine machine(2, [](std::uint32_t threads) { return threads == 1 ? 0.5 : 0.05; });
  machine.run(2s, 1);
  CHECK(machine.size.now() == 1);
  CHECK(machine.run(60s, 1) > 0.9);
}

TEST_CASE("a team is whole again when the machine is") {
  busy_machine machine(8, [](std::uint32_t threads) { return threads <= 2 ? 0.9 : 0.02; });
  machine.run(20s, 2);
  CHECK(machine.run(60s, 2) > 0.85);
  machine.become([](std::uint32_t) { return 1.0; });
  machine.run(20s, 8);
  CHECK(machine.run(10s, 8) > 0.99);
}

TEST_CASE("a smaller team that does no more work is left again") {
  // The whole machine is slow: one alone has no more of it.
  busy_machine machine(2, [](std::uint32_t threads) { return 0.3 / threads; });
  machine.run(5s, 2);
  CHECK(machine.run(60s, 2) > 0.9);
}
