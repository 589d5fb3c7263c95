#pragma once

#include "messages/trace_context.hpp"
#include "services/http/exchange.hpp"

#include <string>
#include <string_view>

namespace godwit {

/// The value of a header `traceparent` as the W3C's Trace Context has it, of version 00 or a later one. One
/// that is malformed counts as absent, as the recommendation says: unknown.
trace_context parse_traceparent(std::string_view value);

/// The trace that a request belongs to; unknown without the header, and if it stands there twice.
trace_context trace_of(const http::request& request);

} // namespace godwit
