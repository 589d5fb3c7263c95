#pragma once

#include "messages/schemas/session.capnp.h"

#include <nlohmann/json.hpp>

namespace godwit {

/// The session object, as the API and the event `snapshot` show it.
nlohmann::ordered_json session_object(schema::SessionInfo::Reader info);

} // namespace godwit
