#pragma once

#include "tools/godwit/client.hpp"
#include "tools/godwit/output.hpp"

namespace godwit::cli {

/// The nodes of the mesh with their roles and state.
int show_nodes(client& node, const settings& how);
/// The actors of the mesh with their state and gauges.
int show_actors(client& node, const settings& how);

} // namespace godwit::cli
