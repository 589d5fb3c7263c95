#pragma once

#include "services/gateway/call.hpp"

#include <caf/fwd.hpp>

namespace godwit {

/// The calls about sessions that are answered at once. Each runs in an actor of its own that ends with the
/// answer; none blocks.

void create_session(caf::actor_system& system, const call& request);
void list_sessions(caf::actor_system& system, const call& request);
void show_session(caf::actor_system& system, const call& request);
void show_transcript(caf::actor_system& system, const call& request);
void cancel_turn(caf::actor_system& system, const call& request);
void suspend_session(caf::actor_system& system, const call& request);
void pin_session(caf::actor_system& system, const call& request);
void unpin_session(caf::actor_system& system, const call& request);
void fork_session(caf::actor_system& system, const call& request);
void erase_session(caf::actor_system& system, const call& request);
/// Posts a message; its turn's events follow as a stream if the client wants them.
void post_message(caf::actor_system& system, const call& request);
/// Streams events.
void follow_events(caf::actor_system& system, const call& request);

} // namespace godwit
