#pragma once

// Makes letters known to CAF as message types. They are never serialised by CAF: its networking is not used.

#include "messages/letter.hpp"
#include "messages/schemas/engine.capnp.h"
#include "messages/schemas/generation.capnp.h"
#include "messages/schemas/session.capnp.h"
#include "messages/schemas/status.capnp.h"
#include "messages/schemas/tokenizer.capnp.h"

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/atom.hpp>
#include <caf/fwd.hpp>
#include <caf/type_id.hpp>

namespace godwit {

/// Asks any actor how it is.
using status_atom = caf::atom_constant<caf::atom("status")>;
/// Asks any actor to finish what it has and take no more.
using drain_atom = caf::atom_constant<caf::atom("drain")>;
/// Ends any actor.
using stop_atom = caf::atom_constant<caf::atom("stop")>;
using info_atom = caf::atom_constant<caf::atom("info")>;
using list_atom = caf::atom_constant<caf::atom("list")>;
using transcript_atom = caf::atom_constant<caf::atom("transcript")>;
using suspend_atom = caf::atom_constant<caf::atom("suspend")>;
using erase_atom = caf::atom_constant<caf::atom("erase")>;
/// Asks a session to end if nobody needs it just now; its journal stays.
using passivate_atom = caf::atom_constant<caf::atom("passivate")>;
/// An actor becomes a member of its node.
using join_atom = caf::atom_constant<caf::atom("join")>;
/// A supervisor gives up.
using escalate_atom = caf::atom_constant<caf::atom("escalate")>;
/// A timer of the actor's own.
using tick_atom = caf::atom_constant<caf::atom("tick")>;

} // namespace godwit

namespace caf {
/// Every letter may be a message element without being serialisable.
template <class Schema>
struct allowed_unsafe_message_type<godwit::letter<Schema>> : std::true_type {};

/// So may a typed handle: where a generation's tokens go, where a session is.
template <class... Signatures>
struct allowed_unsafe_message_type<typed_actor<Signatures...>> : std::true_type {};
} // namespace caf
