#pragma once

#include "messages/catalogue.hpp"
#include "messages/ids.hpp"
#include "services/link/peer_status.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace godwit {

/// How often nodes talk about themselves.
struct mesh_pace {
  std::chrono::milliseconds ask{3'000}; ///< for a peer to say what it serves
  std::chrono::milliseconds again{
    500}; ///< before it is asked again, when it did not or is not ready; doubles (see mesh_view)
  std::chrono::milliseconds refresh{30'000}; ///< before it is asked again, when it did and is
  std::chrono::milliseconds list{2'500};     ///< for each node, when somebody wants the list of nodes
  std::size_t listeners = 256;               ///< requests for the list of nodes that may wait
};

/// A worker on another node.
struct remote_worker {
  node_name node;
  std::uint32_t capacity = 0;
  bool intake = false;   ///< it offers an `intake`: others may compute its prompts
  prefill_actor prefill; ///< both die (for monitors) when the node is lost or has restarted them
  decode_actor decode;
};

/// Answers with all known nodes in the order of their names, this one among them. `link` is self, up or away;
/// of one that is up and answers the rest is what it says of itself, otherwise `state` is away or
/// unresponsive and `why` says more. @returns `overloaded`
using mesh_nodes_actor = caf::typed_actor<caf::replies_to<list_atom>::with<letter<schema::NodeList>>>;

/// For metrics.
struct mesh_figures {
  struct role {
    std::string name;
    std::size_t targets = 0;
    std::string in_use; ///< the node; empty: nobody is there
    std::uint64_t refused = 0;
    std::uint64_t dropped = 0;
  };
  std::vector<link::peer_status> peers; ///< at most half a second old
  std::vector<role> roles;
  std::string registry_trouble; ///< empty: there is none
  std::size_t references = 0;   ///< actors of this node that others hold
  std::uint64_t dead_letters =
    0; ///< of the link, of actors that are not there, and of roles without a target
  std::uint64_t malformed_messages = 0; ///< of other nodes, for actors of this one
  std::uint64_t untaken = 0;            ///< places of letters that actors of this node have not taken yet
  std::uint64_t untaken_overflows = 0;  ///< nodes that lost their place because there was none
};

} // namespace godwit
