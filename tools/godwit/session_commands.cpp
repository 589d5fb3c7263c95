#include "tools/godwit/session_commands.hpp"

#include <fmt/core.h>

#include <cmath>
#include <cstdio>

namespace godwit::cli {

using nlohmann::ordered_json;

namespace {

std::string session_path(const std::string& id, const char* rest = "") {
  return "/v1/sessions/" + path_part(id) + rest;
}

bool ends_turn(const sse_event& event) {
  return event.type == "turn.completed" || event.type == "turn.failed" || event.type == "turn.cancelled";
}

void print_event_json(const sse_event& event, const ordered_json& data) {
  print_json({{"id", event.id}, {"event", event.type}, {"data", data}});
}

/// Prints an answer: all of it as JSON, or a line made of some members.
int print_reply(
  const result<reply>& answer, const settings& how, std::initializer_list<const char*> members) {
  if (!answer)
    return report(answer.error(), how.json);
  if (how.json) {
    print_json(answer->body);
    return exit_ok;
  }
  std::string line;
  for (const char* path : members)
    line += (line.empty() ? "" : "  ") + plain(member(answer->body, path));
  fmt::print("{}\n", line);
  return exit_ok;
}

} // namespace

std::string path_part(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool safe =
      (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    out += safe ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

result<ordered_json> new_session::body() const {
  ordered_json out = ordered_json::object();
  ordered_json sampling = ordered_json::object();
  // JSON has no such numbers: they would arrive as null, which is no setting at all.
  for (const auto& [flag, value] : {std::pair("--temperature", temperature), std::pair("--top-p", top_p),
         std::pair("--min-p", min_p), std::pair("--repeat-penalty", repeat_penalty)})
    if (value && !std::isfinite(*value))
      return fail(errc::invalid_argument, std::string(flag) + " must be a finite number", flag);
  const auto set = [](ordered_json& target, const char* name, const auto& value) {
    if (value)
      target[name] = *value;
  };
  set(out, "model", model);
  set(out, "system", system);
  set(sampling, "temperature", temperature);
  set(sampling, "top_p", top_p);
  set(sampling, "top_k", top_k);
  set(sampling, "min_p", min_p);
  set(sampling, "repeat_penalty", repeat_penalty);
  set(sampling, "seed", seed);
  set(sampling, "max_tokens", max_tokens);
  if (!stop.empty())
    sampling["stop"] = stop;
  if (!sampling.empty())
    out["sampling"] = sampling;
  set(out, "ttl_s", ttl_s);
  set(out, "on_busy", on_busy);
  if (metadata) {
    auto parsed = ordered_json::parse(*metadata, nullptr, false);
    if (!parsed.is_object())
      return fail(errc::invalid_argument, "--metadata must be a JSON object", "metadata");
    out["metadata"] = std::move(parsed);
  }
  return out;
}

int session_create(client& node, const settings& how, const new_session& wanted) {
  const auto body = wanted.body();
  if (!body)
    return report(body.error(), how.json);
  return print_reply(node.call("POST", "/v1/sessions", *body), how, {"id"});
}

int session_list(client& node, const settings& how, std::uint32_t limit, const std::string& after) {
  auto path = "/v1/sessions?limit=" + std::to_string(limit);
  if (!after.empty())
    path += "&after=" + path_part(after);
  const auto answer = node.call("GET", path);
  if (!answer || how.json)
    return print_reply(answer, how, {});
  std::vector<std::vector<std::string>> rows{{"SESSION", "STATUS", "TURNS", "MODEL", "NODE"}};
  for (const auto& session : member(answer->body, "data"))
    rows.push_back(
      {plain(member(session, "id")), plain(member(session, "status")), plain(member(session, "turns")),
        plain(member(session, "model")), plain(member(session, "owner.node"))});
  print_table(rows);
  return exit_ok;
}

int session_show(client& node, const settings& how, const std::string& id) {
  const auto answer = node.call("GET", session_path(id));
  if (!answer || how.json)
    return print_reply(answer, how, {});
  for (const auto& [name, value] : answer->body.items())
    fmt::print("{:<12} {}\n", name, plain(value));
  return exit_ok;
}

bool print_turn_event(const sse_event& event, const settings& how) {
  const auto data = ordered_json::parse(event.data, nullptr, false);
  if (how.json) {
    print_event_json(event, data);
  } else if (event.type == "token") {
    fmt::print("{}", plain(member(data, "text")));
    std::fflush(stdout);
  }
  return ends_turn(event);
}

std::optional<error> turn_failure(const sse_event& event) {
  if (event.type != "turn.failed" && event.type != "error")
    return std::nullopt;
  const auto data = ordered_json::parse(event.data, nullptr, false);
  auto message = plain(member(data, "error.message"));
  return error{
    errc::internal, message.empty() ? "the turn failed" : message, {}, plain(member(data, "error.code"))};
}

int session_send(client& node, const settings& how, const std::string& id, const std::string& text,
  const std::string& key, bool wait) {
  ordered_json body{{"content", text}};
  if (!wait)
    return print_reply(
      node.call("POST", session_path(id, "/messages"), body, key), how, {"turn", "sequence"});
  body["stream"] = true;
  bool ended = false;
  std::optional<error> failure;
  const auto done =
    node.stream("POST", session_path(id, "/messages"), body, key, [&](const sse_event& event) {
      ended = print_turn_event(event, how) || ended;
      if (auto why = turn_failure(event))
        failure = std::move(why);
      return true;
    });
  if (!how.json)
    fmt::print("\n");
  if (!done)
    return report(done.error(), how.json);
  if (failure)
    return report(*failure, how.json);
  if (!ended)
    return report(
      {errc::peer_lost, "the stream ended before the turn did; `godwit session events` goes on", {}, {}},
      how.json);
  return exit_ok;
}

int session_events(
  client& node, const settings& how, const std::string& id, const std::string& after, bool follow) {
  auto path = session_path(id, follow ? "/events?follow=1" : "/events?follow=0");
  if (!after.empty())
    path += "&after=" + path_part(after);
  std::optional<error> failure;
  const auto done = node.stream("GET", path, nullptr, {}, [&](const sse_event& event) {
    const auto data = ordered_json::parse(event.data, nullptr, false);
    if (how.json)
      print_event_json(event, data);
    else
      fmt::print("{}  {:<18} {}\n", event.id, event.type, event.data);
    std::fflush(stdout);
    if (event.type == "error")
      failure = turn_failure(event);
    return true;
  });
  if (!done)
    return report(done.error(), how.json);
  return failure ? report(*failure, how.json) : exit_ok;
}

int session_transcript(client& node, const settings& how, const std::string& id) {
  const auto answer = node.call("GET", session_path(id, "/transcript"));
  if (!answer || how.json)
    return print_reply(answer, how, {});
  for (const auto& message : member(answer->body, "messages"))
    fmt::print("[{}]\n{}\n\n", plain(member(message, "role")), plain(member(message, "content")));
  return exit_ok;
}

int session_fork(client& node, const settings& how, const std::string& id, const std::string& at) {
  auto body = ordered_json::object();
  if (!at.empty())
    body["at"] = at;
  return print_reply(node.call("POST", session_path(id, "/fork"), body), how, {"id"});
}

int session_act(client& node, const settings& how, const std::string& id, const std::string& action) {
  return print_reply(node.call("POST", session_path(id, ("/" + action).c_str()), ordered_json::object()), how,
    {"turn", "status"});
}

int session_pin(client& node, const settings& how, const std::string& id, std::uint32_t seconds) {
  return print_reply(node.call("POST", session_path(id, "/pin"), ordered_json{{"ttl_seconds", seconds}}), how,
    {"pinned_tokens", "expires_at"});
}

int session_unpin(client& node, const settings& how, const std::string& id) {
  return print_reply(node.call("DELETE", session_path(id, "/pin")), how, {"id"});
}

int session_migrate(client& node, const settings& how, const std::string& id, const std::string& target) {
  auto body = ordered_json::object();
  if (!target.empty())
    body["node"] = target;
  return print_reply(node.call("POST", session_path(id, "/migrate"), body), how, {"owner.node"});
}

int session_delete(client& node, const settings& how, const std::string& id) {
  return print_reply(node.call("DELETE", session_path(id)), how, {"id", "status"});
}

} // namespace godwit::cli
