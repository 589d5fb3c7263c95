#pragma once

#include "services/config/config.hpp"
#include "services/daemon/termination.hpp"

#include <cstdio>

namespace godwit {

/// Runs one node until a signal ends it, or until it cannot go on.
///
/// Listens first, so that /healthz answers while the model loads and a port in use is told at once;
/// everything else is answered 503 until all parts are ready. Then prints the one line "godwit: ready on
/// http://HOST:PORT (node NAME)" to `out`. When `stop` is requested, new work is refused with 503, running
/// turns may end until the drain deadline, and what is left goes on at the next start.
/// @param words where the reason goes, in one sentence, if the node cannot start; the log goes there too
/// @returns the exit code: 0 after a drain, 1 if it could not start or go on
int run_node(const config& settings, termination& stop, std::FILE* out, std::FILE* words);

} // namespace godwit
