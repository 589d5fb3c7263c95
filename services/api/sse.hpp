#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace godwit::sse {

/// Server-sent events as the HTML standard frames them. Data is JSON on one line.

/// `data: …` alone, as chat completions are streamed.
std::string data(std::string_view json);
/// `event:` and `data:`, with `id:` in front unless it is empty.
std::string event(std::string_view id, std::string_view type, std::string_view json);
/// How long a client waits before it comes back.
std::string retry(std::uint32_t milliseconds);
/// A line that readers skip, so that nobody takes the connection for dead.
std::string heartbeat();

} // namespace godwit::sse
