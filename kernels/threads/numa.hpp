#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Machines whose memory has parts that are nearer to some processors. A team's threads stay on the node that
// they were given, neighbours on the same one, and weights lie on all nodes in turns, so that all of the
// machine's memory is read at once. On one node nothing is done.
namespace godwit {

/// A part of the machine with processors and memory of its own.
struct numa_node {
  std::uint32_t number = 0;        ///< as the system counts
  std::vector<std::uint32_t> cpus; ///< that this process may use, ascending
};

/// A list as Linux writes it: "0-3,8,10-11". Empty if it is none, or names a number above `most`.
std::vector<std::uint32_t> number_list(std::string_view text, std::uint32_t most = 4095);

/// The nodes that a folder like /sys/devices/system/node describes, without those that have none of the
/// `allowed` processors. Empty if it describes nothing.
std::vector<numa_node> numa_nodes_in(const std::string& folder, std::span<const std::uint32_t> allowed);

/// The processors that this thread may use.
std::vector<std::uint32_t> allowed_cpus();

/// Those of this machine, as they were at the first call.
const std::vector<numa_node>& numa_nodes();

/// Indices of nodes for so many threads: neighbours on the same node, each node with as many as its share of
/// the processors.
std::vector<std::size_t> spread_over(std::span<const numa_node> nodes, std::uint32_t threads);

/// Keeps the calling thread on these processors. False if the system refuses.
bool stay_on(std::span<const std::uint32_t> cpus);

/// Asks that memory which was not touched yet comes from all nodes in turns, if there are several. Advice:
/// without it everything works. @returns whether the system was asked and agreed
bool spread_memory(std::span<std::byte> memory, std::span<const numa_node> nodes);

} // namespace godwit
