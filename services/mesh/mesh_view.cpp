#include "services/mesh/mesh_view.hpp"

#include "messages/text.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace godwit {

namespace {

bool has(const std::set<std::string>& all, std::initializer_list<std::string_view> wanted) {
  return std::ranges::all_of(wanted, [&](auto each) { return all.contains(std::string(each)); });
}

bool serves_sessions(schema::NodeStatus::Reader status) {
  for (const auto each : status.getRoles())
    if (each == "all" || each == "session")
      return true;
  return false;
}

/// By the gauge `shared` of the node's actor `journal`; a node that has none is taken for one with its own.
session_store store_of(schema::NodeStatus::Reader status) {
  if (!serves_sessions(status))
    return session_store::none;
  for (const auto actor : status.getActors())
    if (actor.getName() == "journal")
      for (const auto gauge : actor.getGauges())
        if (gauge.getName() == "shared" && gauge.getValue() == 1)
          return session_store::shared;
  return session_store::own;
}

} // namespace

std::map<std::string, bool> usable_roles(schema::NodeStatus::Reader status) {
  std::set<std::string> roles;
  for (const auto each : status.getRoles())
    roles.insert(text_of(each));
  std::set<std::string> ready;
  std::set<std::string> stopped;
  bool journal = true;
  for (const auto each : status.getActors()) {
    if (each.getState() == "ready")
      ready.insert(text_of(each.getName()));
    else if (each.getName() == "journal")
      journal = false;
    if (each.getState() == "stopped")
      stopped.insert(text_of(each.getName()));
  }
  const bool failed = status.getState() == "failed";
  const bool draining = status.getState() == "draining";
  const bool whole = draining || status.getState() == "ready";
  const bool parts = failed || status.getState() == "starting";

  std::map<std::string, bool> out;
  const auto add = [&](const std::string& name, bool role, std::initializer_list<std::string_view> needs) {
    const bool ended =
      std::ranges::any_of(needs, [&](auto each) { return stopped.contains(std::string(each)); });
    if (role && !ended && (whole || (parts && has(ready, needs))))
      out.emplace(name, draining || failed);
  };
  const bool all = roles.contains("all");
  add("tokenizer", all || roles.contains("tokenizer"), {"tokenizer"});
  add("router", all || roles.contains("router"), {"router"});
  add(
    "directory", journal && (all || roles.contains("session") || roles.contains("directory")), {"directory"});
  const bool prefill = all || roles.contains("prefill");
  const bool decode = all || has(roles, {"prefill", "decode"}) || has(roles, {"decode", "cache"});
  add("worker", decode, {"prefill", "decode"});
  add("intake", decode && !prefill, {"prefill", "decode", "fetch"});
  add("prompts", prefill && !decode, {"prompts"});
  return out;
}

void mesh_view::known(const node_name& name) {
  const auto [place, fresh] = all_.try_emplace(name);
  if (fresh)
    place->second.shown.why = "it was not reached yet";
}

mesh_view::changes mesh_view::forgotten(const node_name& name) {
  const auto found = all_.find(name);
  if (found == all_.end())
    return {};
  auto out = use(name, found->second, {});
  all_.erase(found);
  return out;
}

void mesh_view::came(const node_name& name, moment now) {
  const auto found = all_.find(name);
  if (found == all_.end())
    return;
  auto& one = found->second;
  one.conversation = ++conversations_;
  one.shown = {};
  one.shown.up = true;
  one.asking = false;
  one.hinted = false;
  one.pause = moment(0);
  one.next = now;
}

mesh_view::changes mesh_view::went(const node_name& name, const std::string& why) {
  const auto found = all_.find(name);
  if (found == all_.end())
    return {};
  auto& one = found->second;
  one.conversation = ++conversations_;
  one.shown = {};
  one.shown.why = why;
  one.refuses_sessions.clear();
  one.asking = false;
  one.next = moment::max();
  return use(name, one, {});
}

std::vector<mesh_view::ask> mesh_view::due(moment now) {
  std::vector<ask> out;
  for (auto& [name, one] : all_) {
    if (!one.shown.up || one.asking || one.next > now)
      continue;
    one.asking = true;
    one.hinted = false;
    one.asked = now;
    one.next = moment::max();
    out.push_back({name, one.conversation});
  }
  return out;
}

mesh_view::moment mesh_view::next() const {
  auto first = moment::max();
  for (const auto& [name, one] : all_)
    first = std::min(first, one.next);
  return first;
}

bool mesh_view::current(const ask& which) const {
  const auto found = all_.find(which.node);
  return found != all_.end() && found->second.shown.up && found->second.conversation == which.conversation;
}

mesh_view::changes mesh_view::answered(const ask& which, schema::NodeStatus::Reader status, moment now) {
  if (!current(which))
    return {};
  if (text_of(status.getName()) != which.node.value) {
    failed(which, {errc::corrupt, "it calls itself by another name", {}, {}}, now);
    return {};
  }
  auto& one = all_.at(which.node);
  one.asking = false;
  const bool first = !std::exchange(one.shown.answered, true);
  one.shown.draining = status.getState() == "draining";
  one.shown.why.clear();

  auto uses = usable_roles(status);
  const bool complete = status.getState() == "ready" || status.getState() == "draining";
  const auto model = text_of(status.getModel());
  const auto fingerprint = text_of(status.getFingerprint());
  if (!models_.empty() && !model.empty()) {
    const auto ours = models_.find(model);
    if (ours == models_.end())
      one.shown.why = "it serves another model: " + model;
    else if (!fingerprint.empty() && fingerprint != ours->second)
      one.shown.why = "its file or kernels of the model " + model + " differ";
    if (!one.shown.why.empty())
      uses.clear();
  }
  weigh_sessions(one, which.node, status, uses);
  one.shown.worker = uses.erase("worker") != 0;
  one.shown.intake = uses.erase("intake") != 0;
  const auto prompts = uses.find("prompts");
  one.shown.prompts = prompts != uses.end() && !prompts->second;
  uses.erase("prompts");
  one.shown.capacity = one.shown.worker ? status.getCapacity() : 0;
  auto out = use(which.node, one, std::move(uses));
  // What has begun to change may go on; what stays as it is says so when it changes.
  if (complete || first || !out.empty())
    one.pause = moment(0);
  one.next = one.hinted ? one.asked + pace_.hint : now + (complete ? pace_.refresh : pause(one));
  return out;
}

void mesh_view::weigh_sessions(entry& of, const node_name& name, schema::NodeStatus::Reader status,
  std::map<std::string, bool>& uses) const {
  of.refuses_sessions.clear();
  const auto theirs = store_of(status);
  const auto ours = sessions_.where;
  if (ours == session_store::none || theirs == session_store::none
      || (ours == session_store::shared && theirs == session_store::shared))
    return;
  uses.erase("directory");
  const bool later = std::pair(sessions_.started_at, sessions_.self) > std::pair(status.getStartedAt(), name);
  if (ours == session_store::own && (theirs == session_store::shared || later))
    of.refuses_sessions = "the node " + name.value
                          + " has the role session too, and the journal of this one (rocksdb) is its own: "
                            "give the role to one node, or "
                            "have journal = \"postgres\" on all of them";
  else
    of.shown.why = theirs == session_store::own
                     ? "it has the role session, and a journal that it does not share with this node"
                     : "it has the role session, and this node a journal that it shares with nobody";
}

std::string mesh_view::sessions_refused() const {
  for (const auto& [name, one] : all_)
    if (!one.refuses_sessions.empty())
      return one.refuses_sessions;
  return {};
}

void mesh_view::failed(const ask& which, const error& why, moment now) {
  if (!current(which))
    return;
  auto& one = all_.at(which.node);
  one.asking = false;
  if (!one.shown.answered)
    one.shown.why = why.message;
  one.next = one.hinted ? one.asked + pace_.hint : now + pause(one);
}

mesh_view::moment mesh_view::pause(entry& of) const {
  const auto now = std::max(of.pause, pace_.again);
  of.pause = std::min(2 * now, std::max(pace_.again, std::min(pace_.longest, pace_.refresh)));
  return now;
}

void mesh_view::hinted(const node_name& name, moment now) {
  const auto found = all_.find(name);
  if (found == all_.end() || !found->second.shown.up)
    return;
  auto& one = found->second;
  one.hinted = true;
  one.pause = moment(0);
  if (!one.asking)
    one.next = std::min(one.next, std::max(now, one.asked + pace_.hint));
}

void mesh_view::again(const node_name& name, moment now) {
  const auto found = all_.find(name);
  if (found != all_.end() && found->second.shown.up && !found->second.asking)
    found->second.next = std::min(found->second.next, now + pace_.again);
}

mesh_view::changes mesh_view::use(const node_name& name, entry& of, std::map<std::string, bool> now) {
  changes out;
  for (const auto& [role, draining] : of.uses)
    if (!now.contains(role))
      out.push_back({name, role, false, false});
  for (const auto& [role, draining] : now) {
    const auto before = of.uses.find(role);
    if (before == of.uses.end() || before->second != draining)
      out.push_back({name, role, true, draining});
  }
  of.uses = std::move(now);
  return out;
}

mesh_view::changes mesh_view::in_use(const std::string& name) const {
  changes out;
  for (const auto& [at, one] : all_)
    if (const auto found = one.uses.find(name); found != one.uses.end())
      out.push_back({at, name, true, found->second});
  return out;
}

std::map<node_name, mesh_view::node> mesh_view::nodes() const {
  std::map<node_name, node> out;
  for (const auto& [name, one] : all_)
    out.emplace(name, one.shown);
  return out;
}

bool mesh_view::is_up(const node_name& name) const {
  const auto found = all_.find(name);
  return found != all_.end() && found->second.shown.up;
}

} // namespace godwit
