#pragma once

#include "tools/godwit/client.hpp"
#include "tools/godwit/output.hpp"

#include <cstdint>
#include <string>

namespace godwit::cli {

/// The nodes of the mesh with their roles and state.
int show_nodes(client& node, const settings& how);
/// The actors of all nodes, or of one, with their state and gauges.
int show_actors(client& node, const settings& how, const std::string& of);
/// The letters that come to an actor, for so many or so long: types, sizes and times.
/// @param of the node; empty: the one that is asked
int trace_actor(client& node, const settings& how, const std::string& actor, const std::string& of,
  std::uint32_t letters, std::uint32_t seconds);
/// Has a node end in good order: no new work, running turns end, then the process does.
int drain_node(client& node, const settings& how, const std::string& name);

} // namespace godwit::cli
