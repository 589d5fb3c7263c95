#pragma once

#include "messages/result.hpp"

#include <caf/error.hpp>

namespace godwit {

/// Carries an expected failure through CAF as the error of a request.
caf::error to_caf_error(const error& failure);

/// What a request's error handler was given, as ours. CAF's own errors become `deadline` (time-out),
/// `peer_lost` (receiver down) or `internal`.
error from_caf_error(const caf::error& failure);

} // namespace godwit
