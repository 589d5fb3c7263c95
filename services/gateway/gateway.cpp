#include "services/gateway/gateway.hpp"

#include "messages/reasons.hpp"
#include "services/api/header_fields.hpp"
#include "services/gateway/call.hpp"
#include "services/gateway/call_actor.hpp"
#include "services/gateway/chat_call.hpp"
#include "services/gateway/node_calls.hpp"
#include "services/gateway/session_calls.hpp"
#include "services/gateway/traceparent.hpp"
#include "services/http/error_response.hpp"

#include <algorithm>

namespace godwit {

namespace {

/// A body up to this size is parsed on the server's thread; a longer one would keep other connections
/// waiting.
constexpr std::size_t inline_body_bytes = 16'384;

/// Calls that read a JSON body.
bool takes_body(route call) {
  return call == route::chat_completion || call == route::session_create || call == route::session_message
         || call == route::session_cancel || call == route::session_fork || call == route::session_suspend
         || call == route::session_pin || call == route::actor_trace;
}

/// Calls that need a model or start something, and so are refused by a node that is being shut down.
bool starts_work(route call) {
  return call == route::chat_completion || call == route::session_create || call == route::session_message
         || call == route::session_fork;
}

/// Calls that look at their query themselves.
bool takes_query(route call) {
  return call == route::session_list || call == route::session_events || call == route::actors
         || call == route::actor_trace;
}

/// Calls that every node answers, whatever its roles.
bool for_operators(route call) {
  return call == route::healthz || call == route::readyz || call == route::metrics || call == route::nodes
         || call == route::node_drain || call == route::actors || call == route::actor_trace;
}

void dispatch(caf::actor_system& system, const call& incoming) {
  switch (*incoming.route().call) {
  case route::healthz:
    return answer_health(incoming);
  case route::readyz:
    return answer_readiness(system, incoming);
  case route::metrics:
    return answer_metrics(incoming);
  case route::nodes:
    return list_nodes(system, incoming);
  case route::node_drain:
    return drain_node(system, incoming);
  case route::actors:
    return list_actors(system, incoming);
  case route::actor_trace:
    return trace_actor(system, incoming);
  case route::models:
    return list_models(incoming);
  case route::model:
    return show_model(incoming);
  case route::chat_completion:
    return spawn_chat_call(system, incoming);
  case route::session_list:
    return list_sessions(system, incoming);
  case route::session_create:
    return create_session(system, incoming);
  case route::session_info:
    return show_session(system, incoming);
  case route::session_erase:
    return erase_session(system, incoming);
  case route::session_message:
    return post_message(system, incoming);
  case route::session_events:
    return follow_events(system, incoming);
  case route::session_transcript:
    return show_transcript(system, incoming);
  case route::session_cancel:
    return cancel_turn(system, incoming);
  case route::session_fork:
    return fork_session(system, incoming);
  case route::session_suspend:
    return suspend_session(system, incoming);
  case route::session_pin:
    return pin_session(system, incoming);
  case route::session_unpin:
    return unpin_session(system, incoming);
  case route::session_migrate:
    return incoming.refuse(error{errc::unsupported, "migrate is not supported", {}, "unsupported_call"});
  }
}

class http_gateway final : public gateway {
 public:
  http_gateway(caf::actor_system& system, gateway_config config)
    : system_(system), context_(std::make_shared<gateway_context>()) {
    context_->config = std::move(config);
    const auto& text = *context_->config.model.text; // which every node has
    for (token_id id = 0; id < text.size(); ++id)
      context_->longest_token = std::max(context_->longest_token, text.bytes(id).size());
  }

  // What is under way would keep the system from ending.
  ~http_gateway() override { context_->live.end_all(); }

  void drain() override { context_->draining = true; }

  void handle(std::shared_ptr<http::exchange> exchange) override {
    auto& answer = *exchange;
    const auto& request = answer.request();
    auto route = find_route(request.method, request.path);
    if (route.allow.empty())
      return answer.respond(http::error_response(404, "unknown_route", "there is no such call"));
    if (!route.call) {
      auto refusal = http::error_response(
        405, "method_not_allowed", "this call does not take that method; it takes " + route.allow);
      refusal.fields.emplace_back("Allow", route.allow);
      return answer.respond(std::move(refusal));
    }
    call incoming(context_, std::move(exchange), std::move(route));
    incoming.trace(trace_of(incoming.request()));
    if (const auto checked = check(incoming); !checked)
      return incoming.refuse(checked.error());
    if (takes_body(*incoming.route().call) && is_coded(incoming.request()))
      return incoming.exchange().respond(http::error_response(415, "unsupported_content_encoding",
        "Content-Encoding must be identity or absent: bodies are taken as they are"));
    if (takes_body(*incoming.route().call) && !is_json(incoming.request())
        && (!incoming.request().body.empty() || incoming.request().field("Content-Type")))
      return incoming.exchange().respond(http::error_response(
        415, "unsupported_media_type", "the body must be JSON, with Content-Type: application/json"));
    if (incoming.request().body.size() <= inline_body_bytes)
      return dispatch(system_, incoming);
    in_actor(system_, incoming,
      [](caf::event_based_actor* self, const call& from) { dispatch(self->system(), from); });
  }

 private:
  /// What all calls have in common: tenant, ids, query, and whether the node takes work.
  result<void> check(call& incoming) const {
    const auto which = *incoming.route().call;
    if (!context_->config.serves && !for_operators(which))
      return fail(errc::not_found, "this node is no gateway: ask one that has this role", {}, "no_gateway");
    auto tenant = tenant_of(incoming.request());
    if (!tenant)
      return fail(tenant);
    incoming.tenant(std::move(*tenant));
    if (!takes_query(which))
      if (const auto known = check_parameters(incoming.request(), {}); !known)
        return known;
    const auto names_session = !incoming.route().id.empty() && which != route::model
                               && which != route::node_drain && which != route::actor_trace;
    if (names_session && !has_session_form(incoming.route().id))
      return fail(errc::not_found, "there is no such session", {}, std::string(reasons::session_not_found));
    if (starts_work(which) && context_->draining)
      return fail(errc::draining, "this node is being shut down: try another, or again in a moment");
    return {};
  }

  caf::actor_system& system_;
  std::shared_ptr<gateway_context> context_;
};

} // namespace

std::shared_ptr<gateway> make_gateway(caf::actor_system& system, gateway_config config) {
  return std::make_shared<http_gateway>(system, std::move(config));
}

} // namespace godwit
