#pragma once

#include "messages/catalogue.hpp"

#include <caf/fwd.hpp>

#include <functional>
#include <string>

namespace godwit {

/// A part of a node that tells where its sessions are kept: the gauge `shared` is 1 if other nodes have the
/// journal too. It is `waiting`, and so the node not ready, while this node must not have sessions.
/// @param refused why it must not; empty: it may. Called on a thread of the actor system
common_actor spawn_journal_sign(caf::actor_system& system, bool shared, std::function<std::string()> refused);

} // namespace godwit
