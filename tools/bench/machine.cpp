#include "tools/bench/machine.hpp"

#include "kernels/ops/dispatch.hpp"
#include "kernels/threads/team.hpp"
#include "tools/bench/int8_peak.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace godwit::bench {

namespace {

constexpr std::size_t read_bytes = std::size_t{256} << 20;
constexpr int rounds = 7;

/// The shortest time of a job on all threads.
double shortest(team& threads, const std::function<void(worker&)>& job) {
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    threads.run([&](worker& self) { job(self); });
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

/// Reads words in eight chains, so that the loads do not wait for each other.
std::uint64_t read_all(const std::uint64_t* words, std::size_t count) {
  std::array<std::uint64_t, 8> sums{};
  for (std::size_t i = 0; i + 8 <= count; i += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) {
      sums[lane] ^= words[i + lane];
    }
  }
  std::uint64_t sum = 0;
  for (const auto lane : sums) {
    sum ^= lane;
  }
  return sum;
}

} // namespace

result<machine_limits> measure_machine(const std::string& implementation, std::uint32_t threads) {
  const auto chosen = ops::choose(implementation);
  if (!chosen) {
    return fail(chosen);
  }
  const int8_peak peak = int8_peak_for(*chosen);
  team workers{threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : threads};

  constexpr std::uint64_t repeats = 4'000'000;
  std::vector<std::uint64_t> results(workers.size() * std::size_t{8}); // a cache line for each thread
  const double products =
    shortest(workers, [&](worker& self) { results[self.index() * std::size_t{8}] = peak.run(repeats); });

  std::vector<std::uint64_t> words(read_bytes / sizeof(std::uint64_t), 1);
  const double reads = shortest(workers, [&](worker& self) {
    const auto mine = self.share(words.size(), 512);
    results[self.index() * std::size_t{8}] = read_all(words.data() + mine.begin, mine.end - mine.begin);
  });
  return machine_limits{.instructions = std::string{peak.name},
    .threads = workers.size(),
    .int8_per_s = static_cast<double>(peak.operations * repeats) * workers.size() / products,
    .bytes_per_s = static_cast<double>(read_bytes) / reads};
}

} // namespace godwit::bench
