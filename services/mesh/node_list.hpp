#pragma once

#include "messages/ids.hpp"
#include "messages/letter.hpp"
#include "messages/schemas/status.capnp.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace godwit {

/// A node as the list of nodes shows it.
struct listed_node {
  node_name name;
  std::string link; ///< self, up, away
  std::string why;  ///< not up, not used, or without an answer; of this node: what is wrong with its registry
  std::chrono::microseconds round_trip{0};
  std::optional<letter<schema::NodeStatus>> status; ///< what it said of itself
};

/// @param nodes in any order. One without a status is `starting` if it is this node, `unresponsive` if it is
/// up, else `away`.
letter<schema::NodeList> make_node_list(std::vector<listed_node> nodes);

} // namespace godwit
