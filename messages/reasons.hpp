#pragma once

#include <string_view>

/// Reasons of errors that more than one part gives, or that other parts of the mesh act on.
namespace godwit::reasons {

/// Of `unavailable`: nothing was sent to the node, since no link to it is up.
inline constexpr std::string_view node_unreachable = "node_unreachable";
/// Of `unavailable`: the session is between two owners; the next try may find the new one.
inline constexpr std::string_view session_moves = "session_moves";
/// Of `not_found`: never there, another tenant's, or erased; nobody is told which.
inline constexpr std::string_view session_not_found = "session_not_found";

} // namespace godwit::reasons
