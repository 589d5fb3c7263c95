#include "kernels/threads/numa.hpp"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

namespace godwit {

namespace {

constexpr std::uint32_t most_nodes = 1024;

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  return text;
}

} // namespace

std::vector<std::uint32_t> number_list(std::string_view text, std::uint32_t most) {
  std::vector<std::uint32_t> made;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](std::uint32_t& value) {
    const auto [next, problem] = std::from_chars(at, end, value);
    at = next;
    return problem == std::errc{} && value <= most;
  };
  while (at != end) {
    std::uint32_t first = 0;
    if (!number(first)) {
      return {};
    }
    std::uint32_t last = first;
    if (at != end && *at == '-') {
      ++at;
      if (!number(last) || last < first) {
        return {};
      }
    }
    for (std::uint32_t i = first; i <= last; ++i) {
      made.push_back(i);
    }
    if (at == end) {
      break;
    }
    if (*at++ != ',' || at == end) {
      return {};
    }
  }
  std::ranges::sort(made);
  made.erase(std::unique(made.begin(), made.end()), made.end());
  return made;
}

std::vector<numa_node> numa_nodes_in(const std::string& folder, std::span<const std::uint32_t> allowed) {
  std::vector<numa_node> nodes;
  for (const auto number : number_list(text_of(folder + "/online"), most_nodes - 1)) {
    numa_node node{number, {}};
    const auto cpus = number_list(text_of(folder + "/node" + std::to_string(number) + "/cpulist"));
    std::ranges::set_intersection(cpus, allowed, std::back_inserter(node.cpus));
    if (!node.cpus.empty()) {
      nodes.push_back(std::move(node));
    }
  }
  return nodes;
}

std::vector<std::uint32_t> allowed_cpus() {
  std::vector<std::uint32_t> made;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) {
        made.push_back(cpu);
      }
    }
  }
  return made;
}

const std::vector<numa_node>& numa_nodes() {
  static const auto nodes = numa_nodes_in("/sys/devices/system/node", allowed_cpus());
  return nodes;
}

std::vector<std::size_t> spread_over(std::span<const numa_node> nodes, std::uint32_t threads) {
  std::size_t all = 0;
  for (const auto& node : nodes) {
    all += node.cpus.size();
  }
  std::vector<std::size_t> made;
  std::size_t before = 0; // processors of the nodes up to this one
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    before += nodes[i].cpus.size();
    made.resize(std::max(made.size(), (threads * before + all / 2) / all), i);
  }
  return made;
}

bool stay_on(std::span<const std::uint32_t> cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const auto cpu : cpus) {
    if (cpu < CPU_SETSIZE) {
      CPU_SET(cpu, &set);
    }
  }
  return ::sched_setaffinity(0, sizeof set, &set) == 0;
}

bool spread_memory(std::span<std::byte> memory, std::span<const numa_node> nodes) {
  if (nodes.size() < 2) {
    return false;
  }
  constexpr std::size_t bits = 8 * sizeof(unsigned long);
  std::array<unsigned long, most_nodes / bits> mask{};
  for (const auto& node : nodes) {
    if (node.number < most_nodes) {
      mask[node.number / bits] |= 1UL << (node.number % bits);
    }
  }
  // The system reads one bit less than it is told.
  return ::syscall(
           SYS_mbind, memory.data(), memory.size(), MPOL_INTERLEAVE, mask.data(), most_nodes + 1UL, 0U)
         == 0;
}

} // namespace godwit
