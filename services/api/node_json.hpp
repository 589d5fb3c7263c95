#pragma once

#include "actors/model_card.hpp"
#include "messages/schemas/status.capnp.h"

#include <string>

namespace godwit {

/// `GET /v1/nodes`: this node, until there are more.
std::string node_list_json(schema::NodeStatus::Reader node);
/// `GET /v1/actors`.
std::string actor_list_json(schema::NodeStatus::Reader node);

/// The answer of `GET /readyz`.
struct readiness {
  bool ready = false;
  std::string body;
};

/// A node is ready when it and all of its actors are.
readiness readiness_of(schema::NodeStatus::Reader node);
/// Not ready, for one reason.
readiness not_ready(const std::string& actor, const std::string& state, const std::string& why);

/// A model in OpenAI's shape.
std::string model_json(const model_card& model);
std::string model_list_json(const model_card& model);

} // namespace godwit
