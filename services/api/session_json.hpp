#pragma once

#include "messages/ids.hpp"
#include "messages/schemas/engine.capnp.h"
#include "messages/schemas/session.capnp.h"

#include <cstdint>
#include <string>

namespace godwit {

/// The session object.
std::string session_json(schema::SessionInfo::Reader info);
/// The session object of a session that is no more.
std::string erased_session_json(schema::SessionInfo::Reader info);
/// One page of sessions.
std::string session_list_json(schema::SessionList::Reader list);
/// The messages of a session.
std::string transcript_json(schema::Transcript::Reader transcript);
/// What became of a turn that was asked to stop.
std::string turn_json(schema::TurnState::Reader turn);
/// What the device keeps of a session. @param expires_at seconds since 1970
std::string pin_json(const session_id& session, schema::CachePinned::Reader pinned, std::int64_t expires_at);
/// Where a message went. `after` is the event behind which those of its turn begin.
std::string accepted_json(schema::MessageAccepted::Reader accepted);

} // namespace godwit
