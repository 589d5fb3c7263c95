#pragma once

#include "messages/ids.hpp"

#include <vector>

namespace godwit {

/// The node that acts for a session whose owner cannot: the one with the highest hash of session and node
/// (rendezvous hashing, Thaler and Ravishankar 1998). Nodes that know the same names choose the same one; a
/// node more or less moves only the sessions of that node. The hash is the same on every machine and in every
/// build.
/// @returns nullptr if there are no nodes
const node_name* choose_owner(const session_id& session, const std::vector<node_name>& nodes);

} // namespace godwit
