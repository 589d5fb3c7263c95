#include "services/gateway/node_calls.hpp"

#include "services/api/error_response.hpp"
#include "services/api/header_fields.hpp"
#include "services/api/node_json.hpp"
#include "services/api/session_requests.hpp"
#include "services/api/text_of.hpp"
#include "services/gateway/call_actor.hpp"

#include <optional>
#include <string>
#include <vector>

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

/// Asks for all nodes and answers with the reply.
template <class Answer>
void ask_nodes(caf::actor_system& system, const call& request, Answer answer) {
  in_actor(system, request, [=](caf::event_based_actor* self, const call& from) {
    const auto& config = from.config();
    if (config.nodes)
      return self->request(config.nodes, from.timeout(), list_atom::value)
        .then([=](const letter<schema::NodeList>& nodes) { answer(from, nodes.read()); }, from.refusing());
    self->request(config.node, from.timeout(), info_atom::value)
      .then(
        [=](const letter<schema::NodeStatus>& status) {
          const auto alone = list_of_one(status.read());
          answer(from, alone.read());
        },
        from.refusing());
  });
}

error unknown_node() {
  return {errc::not_found, "there is no such node, or it is not up", {}, "node_not_found"};
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
    [](const call& from, schema::NodeStatus::Reader node) {
      const auto& absent = from.config().absent;
      answer(from, readiness_of(node, absent ? absent() : std::vector<absent_role>()));
    },
    [](const call& from, const caf::error&) {
      answer(from, not_ready("node", "unknown", "it does not answer"));
    });
}

void answer_metrics(const call& request) {
  request.exchange().respond(
    {200, {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}}, request.config().metrics()});
}

void list_nodes(caf::actor_system& system, const call& request) {
  ask_nodes(system, request,
    [](const call& from, schema::NodeList::Reader nodes) { from.answer(node_list_json(nodes)); });
}

void list_actors(caf::actor_system& system, const call& request) {
  if (const auto known = check_parameters(request.request(), {"node"}); !known)
    return request.refuse(known.error());
  const std::string only(request.request().parameter("node").value_or(""));
  ask_nodes(system, request, [only](const call& from, schema::NodeList::Reader nodes) {
    bool known = only.empty();
    for (const auto node : nodes.getNodes())
      known = known || text_of(node.getName()) == only;
    if (!known)
      return from.refuse(unknown_node());
    from.answer(actor_list_json(nodes, only));
  });
}

void drain_node(caf::actor_system& system, const call& request) {
  if (const auto parsed = parse_nothing(request.request().body); !parsed)
    return request.refuse(parsed.error());
  in_actor(system, request, [](caf::event_based_actor* self, const call& from) {
    const auto& find = from.config().process;
    const auto process = find ? find(from.route().id) : std::nullopt;
    if (!process)
      return from.refuse(unknown_node());
    self->request(*process, from.timeout(), leave_atom::value)
      .then(
        [from](const letter<schema::ActorStatus>& status) {
          from.answer(drain_json(from.route().id, status.read()), 202);
        },
        from.refusing());
  });
}

void trace_actor(caf::actor_system& system, const call& request) {
  if (const auto known = check_parameters(request.request(), {"node"}); !known)
    return request.refuse(known.error());
  const auto parsed = parse_trace(request.request().body, most_traced_letters,
    static_cast<std::uint32_t>(longest_trace / std::chrono::seconds(1)));
  if (!parsed)
    return request.refuse(parsed.error());
  const std::string node(request.request().parameter("node").value_or(""));
  in_actor(system, request, [node, wish = *parsed](caf::event_based_actor* self, const call& from) {
    const auto& find = from.config().process;
    const auto process = find ? find(node) : std::nullopt;
    if (!process)
      return from.refuse(unknown_node());
    const auto mail = letter<schema::TraceRequest>::make([&](schema::TraceRequest::Builder b) {
      b.setActor(from.route().id.c_str());
      b.setTenant(from.tenant().value);
      b.setLetters(wish.letters);
      b.setMilliseconds(wish.seconds * 1'000);
    });
    self->request(*process, from.timeout() + std::chrono::seconds(wish.seconds), mail)
      .then([from](const letter<schema::Trace>& trace) { from.answer(trace_json(trace.read())); },
        from.refusing());
  });
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
