#include "kernels/threads/numa.hpp"
#include "kernels/threads/team.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

using namespace godwit;

namespace {

using numbers = std::vector<std::uint32_t>;

/// A folder that describes a machine as the system would.
class fake_machine {
 public:
  fake_machine(const std::string& online, const std::vector<std::pair<std::uint32_t, std::string>>& nodes) {
    write(folder_.path() / "online", online);
    for (const auto& [number, cpus] : nodes) {
      const auto node = folder_.path() / ("node" + std::to_string(number));
      std::filesystem::create_directory(node);
      write(node / "cpulist", cpus);
    }
  }
  std::vector<numa_node> nodes(const numbers& allowed) const {
    return numa_nodes_in(folder_.path().string(), allowed);
  }

 private:
  static void write(const std::filesystem::path& file, const std::string& text) {
    std::ofstream(file) << text << '\n';
  }
  temporary_folder folder_;
};

} // namespace

TEST_CASE("lists of numbers are read as the system writes them, and anything else is none") {
  CHECK(number_list("0") == numbers{0});
  CHECK(number_list("0-3,8,10-11") == numbers{0, 1, 2, 3, 8, 10, 11});
  CHECK(number_list("").empty());
  for (const auto* const bad : {"a", "0-", "-1", "1,", ",1", "3-2", "0 1", "0-4096", "99999999999"}) {
    INFO(bad);
    CHECK(number_list(bad).empty());
  }
}

TEST_CASE("nodes are those with processors that may be used") {
  const fake_machine machine{"0-1,4", {{0, "0-3"}, {1, "4-7"}, {4, ""}}};
  const auto all = machine.nodes({0, 1, 2, 3, 4, 5, 6, 7});
  REQUIRE(all.size() == 2);
  CHECK(all[0].cpus == numbers{0, 1, 2, 3});
  CHECK(all[1].number == 1);
  CHECK(all[1].cpus == numbers{4, 5, 6, 7});
  CHECK(machine.nodes({1, 2}).size() == 1);
  CHECK(numa_nodes_in("/nonexistent", numbers{0}).empty());
  CHECK(fake_machine{"0-9999", {}}.nodes({0}).empty());
}

TEST_CASE("threads are spread by processors, neighbours on one node") {
  const std::vector<numa_node> even{{0, {0, 1}}, {1, {2, 3}}};
  CHECK(spread_over(even, 4) == std::vector<std::size_t>{0, 0, 1, 1});
  CHECK(spread_over(even, 2) == std::vector<std::size_t>{0, 1});
  CHECK(spread_over(even, 8) == std::vector<std::size_t>{0, 0, 0, 0, 1, 1, 1, 1});
  const std::vector<numa_node> uneven{{0, {0}}, {1, {1, 2, 3}}, {2, {4, 5, 6, 7}}};
  CHECK(spread_over(uneven, 8) == std::vector<std::size_t>{0, 1, 1, 1, 2, 2, 2, 2});
  for (std::uint32_t threads = 1; threads < 40; ++threads) {
    const auto made = spread_over(uneven, threads);
    CHECK(made.size() == threads);
    CHECK(std::ranges::is_sorted(made));
  }
  CHECK(spread_over({}, 3).empty());
}

TEST_CASE("a team's threads stay on their nodes, and its caller where it was") {
  const auto before = allowed_cpus();
  if (before.size() < 2) {
    return; // nothing to choose from
  }
  const std::vector<numa_node> nodes{{0, {before.front()}}, {1, {before.back()}}};
  team workers{4, false, nodes};
  std::vector<numbers> on(4);
  workers.run([&](worker& self) { on[self.index()] = allowed_cpus(); });
  CHECK(on[0] == before);
  CHECK(on[1] == nodes[0].cpus);
  CHECK(on[2] == nodes[1].cpus);
  CHECK(on[3] == nodes[1].cpus);
  CHECK(allowed_cpus() == before);
}

TEST_CASE("memory is spread over several nodes only, and can be used whatever the system says") {
  const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) * 4;
  void* const start = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(start != MAP_FAILED);
  const std::span<std::byte> memory{static_cast<std::byte*>(start), size};
  CHECK_FALSE(spread_memory(memory, std::vector<numa_node>{{0, {0}}}));
  // The second node need not be there.
  spread_memory(memory, std::vector<numa_node>{{0, {0}}, {1, {1}}});
  std::ranges::fill(memory, std::byte{1});
  CHECK(memory.back() == std::byte{1});
  ::munmap(start, size);
}
