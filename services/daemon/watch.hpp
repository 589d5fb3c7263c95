#pragma once

#include "actors/device/engine_counters.hpp"
#include "actors/handover/handover_counters.hpp"
#include "services/http/server.hpp"
#include "services/journal/metrics.hpp"
#include "services/metrics/metrics.hpp"

#include <functional>
#include <memory>

namespace godwit {

// The counters of the parts of a node as figures of its metrics. What a `source` returns is read when the
// text is made; it may return nothing while the part is not there.

void watch_engine(metrics& figures, std::function<std::shared_ptr<const engine_counters>()> source);

/// Of a node in a mesh.
void watch_handover(metrics& figures, std::function<std::shared_ptr<const handover_counters>()> source);

/// @param source keeps what it points to alive
void watch_journal(metrics& figures, std::function<std::shared_ptr<const journal_counters>()> source);

void watch_http(metrics& figures, std::function<http::server_counts()> source);

} // namespace godwit
