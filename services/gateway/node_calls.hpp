#pragma once

#include "services/gateway/call.hpp"

#include <caf/fwd.hpp>

namespace godwit {

/// The calls for those who run the node.

/// 200 as long as the process answers.
void answer_health(const call& request);
/// 200 when all roles are ready, else 503 with the reasons.
void answer_readiness(caf::actor_system& system, const call& request);
/// Prometheus text.
void answer_metrics(const call& request);
/// The nodes of the mesh.
void list_nodes(caf::actor_system& system, const call& request);
/// Ends a node's process in good order: 202 when it has begun to drain.
void drain_node(caf::actor_system& system, const call& request);
void list_actors(caf::actor_system& system, const call& request);
/// Watches the letters that come to an actor, for so many or so long, and answers with what they were.
void trace_actor(caf::actor_system& system, const call& request);
void list_models(const call& request);
void show_model(const call& request);

} // namespace godwit
