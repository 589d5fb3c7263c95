#include "services/api/node_json.hpp"

#include "services/api/text_of.hpp"

#include <nlohmann/json.hpp>

#include <cmath>

namespace godwit {

namespace {

using nlohmann::ordered_json;

std::string dump(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json list_of(ordered_json data) {
  return {{"object", "list"}, {"data", std::move(data)}};
}

/// A gauge without a fraction is shown as the count that it is.
ordered_json gauge(double value) {
  if (std::trunc(value) == value && std::abs(value) < 9007199254740992.0)
    return static_cast<std::int64_t>(value);
  return value;
}

ordered_json actor(schema::ActorStatus::Reader status, const std::string& node) {
  auto gauges = ordered_json::object();
  for (const auto entry : status.getGauges())
    gauges[text_of(entry.getName())] = gauge(entry.getValue());
  ordered_json out{
    {"name", text_of(status.getName())}, {"node", node}, {"state", text_of(status.getState())}};
  if (status.getReason().size() != 0)
    out["reason"] = text_of(status.getReason());
  out["gauges"] = std::move(gauges);
  return out;
}

ordered_json model(const model_card& card) {
  return {{"id", card.id}, {"object", "model"}, {"created", card.created}, {"owned_by", "godwit"},
    {"context", card.context}, {"fingerprint", card.fingerprint}};
}

readiness answer(ordered_json reasons) {
  const auto ready = reasons.empty();
  ordered_json body{{"status", ready ? "ready" : "not_ready"}};
  if (!ready)
    body["reasons"] = std::move(reasons);
  return {ready, dump(body)};
}

ordered_json reason(const std::string& actor, const std::string& state, const std::string& why) {
  ordered_json out{{"actor", actor}, {"state", state}};
  if (!why.empty())
    out["reason"] = why;
  return out;
}

} // namespace

std::string node_list_json(schema::NodeStatus::Reader node) {
  auto roles = ordered_json::array();
  for (const auto role : node.getRoles())
    roles.push_back(text_of(role));
  return dump(list_of(
    ordered_json::array({{{"name", text_of(node.getName())}, {"incarnation", text_of(node.getIncarnation())},
      {"state", text_of(node.getState())}, {"roles", std::move(roles)}, {"model", text_of(node.getModel())},
      {"started_at", node.getStartedAt()}}})));
}

std::string actor_list_json(schema::NodeStatus::Reader node) {
  auto data = ordered_json::array();
  for (const auto status : node.getActors())
    data.push_back(actor(status, text_of(node.getName())));
  return dump(list_of(std::move(data)));
}

readiness readiness_of(schema::NodeStatus::Reader node) {
  auto reasons = ordered_json::array();
  for (const auto status : node.getActors())
    if (status.getState() != "ready")
      reasons.push_back(
        reason(text_of(status.getName()), text_of(status.getState()), text_of(status.getReason())));
  if (reasons.empty() && node.getState() != "ready")
    reasons.push_back(reason("node", text_of(node.getState()), {}));
  return answer(std::move(reasons));
}

readiness not_ready(const std::string& actor, const std::string& state, const std::string& why) {
  return answer(ordered_json::array({reason(actor, state, why)}));
}

std::string model_json(const model_card& card) {
  return dump(model(card));
}

std::string model_list_json(const model_card& card) {
  return dump(list_of(ordered_json::array({model(card)})));
}

} // namespace godwit
