#pragma once

#include "messages/error.hpp"

#include <string_view>

namespace godwit {

/// The HTTP status of an expected failure: the one table.
int status_of(errc code);

/// The word for a kind of error that clients of OpenAI-shaped APIs read, by status.
std::string_view error_type(int status);

/// True for failures whose words are for the node's log only: they may name files or peers.
bool is_private(errc code);

/// What clients read in place of those words.
inline constexpr std::string_view private_message = "the node failed on this request; its log says why";

} // namespace godwit
