#include "services/gateway/node_calls.hpp"

#include "services/api/error_response.hpp"
#include "services/api/node_json.hpp"
#include "services/gateway/call_actor.hpp"

namespace godwit {

namespace {

/// Asks the node how it is and answers with the reply.
template <class Answer, class Refuse>
void ask_node(caf::actor_system& system, const call& request, Answer answer, Refuse refuse) {
  in_actor(system, request, [=](caf::event_based_actor* self, const call& from) {
    self->request(from.config().node, from.timeout(), info_atom::value)
      .then([=](const letter<schema::NodeStatus>& status) { answer(from, status.read()); },
        [=](const caf::error& failure) { refuse(from, failure); });
  });
}

void refuse(const call& request, const caf::error& failure) {
  request.refuse(failure);
}

void answer(const call& request, const readiness& state) {
  auto out = json_response(state.body, state.ready ? 200 : 503);
  if (!state.ready)
    out.fields.emplace_back("Retry-After", std::to_string(request.config().options.retry_after.count()));
  request.exchange().respond(std::move(out));
}

} // namespace

void answer_health(const call& request) {
  request.answer(R"({"status":"ok"})");
}

void answer_readiness(caf::actor_system& system, const call& request) {
  if (request.context().draining)
    return answer(request, not_ready("gateway", "draining", "the node is being shut down"));
  if (const auto& trouble = request.config().journal_trouble)
    if (const auto why = trouble(); !why.empty())
      return answer(request, not_ready("journal", "failed", why));
  ask_node(
    system, request,
    [](const call& from, schema::NodeStatus::Reader node) { answer(from, readiness_of(node)); },
    [](const call& from, const caf::error&) {
      answer(from, not_ready("node", "unknown", "it does not answer"));
    });
}

void answer_metrics(const call& request) {
  request.exchange().respond(
    {200, {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}}, request.config().metrics()});
}

void list_nodes(caf::actor_system& system, const call& request) {
  ask_node(
    system, request,
    [](const call& from, schema::NodeStatus::Reader node) { from.answer(node_list_json(node)); }, refuse);
}

void list_actors(caf::actor_system& system, const call& request) {
  ask_node(
    system, request,
    [](const call& from, schema::NodeStatus::Reader node) { from.answer(actor_list_json(node)); }, refuse);
}

void list_models(const call& request) {
  request.answer(model_list_json(request.config().model));
}

void show_model(const call& request) {
  if (request.route().id != request.config().model.id)
    return request.refuse(
      error{errc::not_found, "this node does not serve that model", "model", "model_not_found"});
  request.answer(model_json(request.config().model));
}

} // namespace godwit
