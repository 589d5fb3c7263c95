// Not run with the others: `build/release/bin/test_mesh '[figures]'` prints what docs/mesh.md quotes.

#include "tests/unit/services/mesh/mesh_nodes.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdio>

#include <sys/resource.h>

using namespace godwit;
using namespace std::chrono_literals;

namespace {

double cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// Of all frames that have come, without what TCP and CURVE add.
double bytes_received(const std::vector<std::unique_ptr<test_node>>& nodes) {
  double sum = 0;
  for (const auto& each : nodes)
    sum += static_cast<double>(each->of().counters().bytes_received);
  return sum;
}

} // namespace

TEST_CASE("an idle mesh of sixteen nodes, and how long a node takes to join one", "[.][figures]") {
  constexpr std::size_t count = 16;
  const auto all = std::make_shared<board>();
  std::vector<std::unique_ptr<test_node>> nodes;
  const auto add = [&](const std::string& name) {
    auto made = std::make_unique<test_node>(
      name, std::make_shared<board_registry>(all), std::vector<std::string>{"session", "tokenizer"});
    made->serve();
    return made;
  };
  for (std::size_t i = 0; i < count; ++i)
    nodes.push_back(add("node-" + std::to_string(i)));
  REQUIRE(eventually([&] {
    return std::ranges::all_of(
      nodes, [](const auto& each) { return each->of().sessions()->alive().size() == count; });
  }));
  std::this_thread::sleep_for(2s);
  const auto cpu = cpu_seconds();
  const auto bytes = bytes_received(nodes);
  const auto idle = 60s;
  std::this_thread::sleep_for(idle);
  const double seconds = std::chrono::duration<double>(idle).count() * static_cast<double>(count);
  std::printf("idle: %.2f %% of a core and %.1f kB/s received by each of %zu nodes in one process\n",
    100 * (cpu_seconds() - cpu) / seconds, (bytes_received(nodes) - bytes) / 1e3 / seconds, count);

  std::vector<double> joined;
  for (int i = 0; i < 20; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto late = add("late");
    REQUIRE(eventually([&] {
      return late->of().sessions()->alive().size() == count + 1
             && nodes[0]->of().sessions()->find(node_name("late")).has_value();
    }));
    joined.push_back(
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  std::ranges::sort(joined);
  std::printf(
    "a node joins: %.0f ms in the middle, %.0f ms at most\n", joined[joined.size() / 2], joined.back());
}
