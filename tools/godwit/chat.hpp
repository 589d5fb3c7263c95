#pragma once

#include "tools/godwit/session_commands.hpp"

namespace godwit::cli {

/// Talks to a session line by line until the end of input. On a terminal with editing and a history; Ctrl-C
/// cancels the running turn, not the program. Lines that begin with '/' are commands: /help lists them.
/// @param id an existing session; empty opens a new one, and it stays when the chat ends
int chat(client& node, const settings& how, const std::string& id, const new_session& wanted);

} // namespace godwit::cli
