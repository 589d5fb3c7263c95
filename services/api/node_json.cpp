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

/// Only what the node told, or what is known of one that does not answer.
ordered_json entry(schema::NodeStatus::Reader status) {
  auto roles = ordered_json::array();
  for (const auto role : status.getRoles())
    roles.push_back(text_of(role));
  ordered_json out{{"name", text_of(status.getName())}, {"incarnation", text_of(status.getIncarnation())},
    {"state", text_of(status.getState())}, {"roles", std::move(roles)}, {"model", text_of(status.getModel())},
    {"fingerprint", text_of(status.getFingerprint())}, {"version", text_of(status.getVersion())},
    {"capacity", status.getCapacity()}, {"started_at", status.getStartedAt()},
    {"link", text_of(status.getLink())}};
  if (status.getWhy().size() != 0)
    out["reason"] = text_of(status.getWhy());
  if (status.getRoundTrip() > 0)
    out["round_trip_s"] = status.getRoundTrip();
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

std::string node_list_json(schema::NodeList::Reader nodes) {
  auto data = ordered_json::array();
  for (const auto each : nodes.getNodes())
    data.push_back(entry(each));
  return dump(list_of(std::move(data)));
}

std::string actor_list_json(schema::NodeList::Reader nodes, std::string_view only) {
  auto data = ordered_json::array();
  for (const auto each : nodes.getNodes()) {
    const auto name = text_of(each.getName());
    if (!only.empty() && name != only)
      continue;
    for (const auto status : each.getActors())
      data.push_back(actor(status, name));
  }
  return dump(list_of(std::move(data)));
}

std::string drain_json(const std::string& node, schema::ActorStatus::Reader status) {
  return dump(ordered_json{{"name", node}, {"state", text_of(status.getState())}});
}

std::string trace_json(schema::Trace::Reader trace) {
  auto letters = ordered_json::array();
  for (const auto each : trace.getLetters()) {
    auto& one = letters.emplace_back(ordered_json{{"at_s", static_cast<double>(each.getMicroseconds()) / 1e6},
      {"kind", text_of(each.getKind())}, {"types", text_of(each.getTypes())}, {"bytes", each.getBytes()}});
    if (each.getTo().size() == 0)
      one["from"] = text_of(each.getFrom());
    else
      one["to"] = text_of(each.getTo());
  }
  return dump(ordered_json{{"actor", text_of(trace.getActor())},
    {"seconds", static_cast<double>(trace.getMilliseconds()) / 1e3}, {"letters", std::move(letters)}});
}

letter<schema::NodeList> list_of_one(schema::NodeStatus::Reader node) {
  return letter<schema::NodeList>::make([&](schema::NodeList::Builder b) {
    auto nodes = b.initNodes(1);
    nodes.setWithCaveats(0, node);
    nodes[0].setLink("self");
  });
}

readiness readiness_of(schema::NodeStatus::Reader node, const std::vector<absent_role>& absent) {
  auto reasons = ordered_json::array();
  for (const auto status : node.getActors())
    if (status.getState() != "ready")
      reasons.push_back(
        reason(text_of(status.getName()), text_of(status.getState()), text_of(status.getReason())));
  for (const auto& [role, why] : absent)
    reasons.push_back(ordered_json{{"role", role}, {"state", "away"}, {"reason", why}});
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
