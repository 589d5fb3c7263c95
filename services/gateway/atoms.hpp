#pragma once

#include "messages/actor_types.hpp"

#include <caf/replies_to.hpp>

namespace godwit {

/// The socket has taken a write (true), or the client is gone (false).
using written_atom = caf::atom_constant<caf::atom("written")>;
/// The client has left.
using left_atom = caf::atom_constant<caf::atom("left")>;
/// Time to try something again.
using again_atom = caf::atom_constant<caf::atom("again")>;
/// Nobody can send tokens of this generation any more.
using orphan_atom = caf::atom_constant<caf::atom("orphan")>;

} // namespace godwit
