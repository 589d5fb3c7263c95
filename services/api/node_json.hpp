#pragma once

#include "actors/model_card.hpp"
#include "messages/letter.hpp"
#include "messages/schemas/status.capnp.h"
#include "messages/schemas/trace.capnp.h"

#include <string>
#include <string_view>
#include <vector>

namespace godwit {

/// `GET /v1/nodes`: all that are known.
std::string node_list_json(schema::NodeList::Reader nodes);
/// `GET /v1/actors`: of all nodes that told of theirs, or of the one of that name.
std::string actor_list_json(schema::NodeList::Reader nodes, std::string_view only = {});
/// The answer of `POST /v1/nodes/{name}/drain`.
/// The letters that a trace has seen.
std::string trace_json(schema::Trace::Reader trace);
std::string drain_json(const std::string& node, schema::ActorStatus::Reader status);

/// The list of a node that is alone.
letter<schema::NodeList> list_of_one(schema::NodeStatus::Reader node);

/// The answer of `GET /readyz`.
struct readiness {
  bool ready = false;
  std::string body;
};

/// A role that this node leaves to others, when nobody has it now, and why.
struct absent_role {
  std::string role;
  std::string why;
};

/// A node is ready when it and all of its actors are, and others have the roles that it needs and lacks.
readiness readiness_of(schema::NodeStatus::Reader node, const std::vector<absent_role>& absent = {});
/// Not ready, for one reason.
readiness not_ready(const std::string& actor, const std::string& state, const std::string& why);

/// A model in OpenAI's shape.
std::string model_json(const model_card& model);
std::string model_list_json(const model_card& model);

} // namespace godwit
