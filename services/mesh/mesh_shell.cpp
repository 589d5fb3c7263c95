#include "services/mesh/mesh_shell.hpp"

#include "messages/actor_error.hpp"
#include "messages/text.hpp"
#include "services/mesh/node_list.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/system_messages.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

namespace godwit {

namespace {

using std::chrono::milliseconds;
using moment = mesh_view::moment;
using list_promise = caf::typed_response_promise<letter<schema::NodeList>>;

/// Changes of this node within that time are told at once.
constexpr milliseconds gather{20};

moment now() {
  return std::chrono::duration_cast<moment>(std::chrono::steady_clock::now().time_since_epoch());
}

/// The nodes that are being asked for a list.
struct roll_call {
  std::map<node_name, letter<schema::NodeStatus>> answers;
  std::map<node_name, std::string> failures;
  std::size_t open = 0;
  std::vector<list_promise> waiting;
};

struct shell_state {
  static inline const char* name = "mesh";
  shell_parts parts;
  std::optional<mesh_view> view;
  std::map<std::string, caf::strong_actor_ptr> offered;
  std::map<node_name, remote_worker> workers;
  std::function<void(const remote_worker&)> watcher;
  std::function<void(const node_name&)> worker_gone;
  std::set<node_name> prompt_nodes; ///< that the other watcher was told of
  std::function<void(const node_name&, bool)> prompt_watcher;
  std::shared_ptr<roll_call> roll; ///< null: nobody wants the list
  moment tick_at = moment::max();
  bool tells = false;  ///< peers will be told soon that this node has changed
  std::string refused; ///< that was told
};

using self_pointer = mesh_shell_actor::stateful_pointer<shell_state>;

void arm(self_pointer self) {
  const auto next = self->state.view->next();
  if (next >= self->state.tick_at)
    return;
  self->state.tick_at = next;
  self->delayed_send(self, std::max(next - now(), milliseconds(0)), tick_atom::value);
}

void put_in_place(self_pointer self, const mesh_view::changes& changes) {
  auto& parts = self->state.parts;
  for (const auto& each : changes) {
    if (each.there)
      parts.roles->put(each.node, each.name, each.draining);
    else
      parts.roles->remove(each.node, each.name);
    // One that drains, or whose directory is being restarted, still has its sessions: others take them when
    // the node is lost.
    if (each.name == "directory" && each.there)
      parts.sessions->put(each.node, parts.exchange->remote<directory_actor>(each.node.value, "directory"));
  }
}

void changed(self_pointer self);

/// Tells when this node must not have sessions beside others, or may again: its owner first, whose status
/// peers ask for then.
void tell_refusal(self_pointer self) {
  auto& state = self->state;
  if (!state.parts.refused)
    return;
  auto now = state.view->sessions_refused();
  if (now == state.refused)
    return;
  state.refused = std::move(now);
  state.parts.refused(state.refused);
  changed(self);
}

/// Tells the watcher what has changed of the nodes that compute prompts.
void compare_prompt_nodes(self_pointer self) {
  auto& state = self->state;
  std::set<node_name> now;
  for (const auto& [name, node] : state.view->nodes())
    if (node.up && node.prompts)
      now.insert(name);
  const auto before = std::exchange(state.prompt_nodes, now);
  if (!state.prompt_watcher)
    return;
  for (const auto& name : before)
    if (!now.contains(name))
      state.prompt_watcher(name, false);
  for (const auto& name : now)
    if (!before.contains(name))
      state.prompt_watcher(name, true);
}

/// The link has said so to all but this actor, which may have put the node back in meanwhile.
void lost(self_pointer self, const node_name& node, const mesh_view::changes& changes) {
  put_in_place(self, changes);
  self->state.parts.roles->lost(node);
  self->state.parts.sessions->remove(node);
  tell_refusal(self);
  compare_prompt_nodes(self);
}

// --- workers of other nodes ---

void drop_worker(self_pointer self, const node_name& node) {
  const auto found = self->state.workers.find(node);
  if (found == self->state.workers.end())
    return;
  self->demonitor(found->second.prefill->address());
  self->demonitor(found->second.decode->address());
  self->state.workers.erase(found);
  if (self->state.worker_gone)
    self->state.worker_gone(node);
}

void take_worker(
  self_pointer self, const mesh_view::ask& which, const prefill_actor& prefill, const decode_actor& decode) {
  auto& state = self->state;
  const auto nodes = state.view->nodes();
  const auto found = nodes.find(which.node);
  if (!state.view->current(which) || found == nodes.end() || !found->second.worker)
    return;
  if (const auto known = state.workers.find(which.node);
      known != state.workers.end() && known->second.prefill == prefill && known->second.decode == decode)
    return;
  drop_worker(self, which.node);
  const auto& worker = state.workers
                         .emplace(which.node, remote_worker{which.node, found->second.capacity,
                                                found->second.intake, prefill, decode})
                         .first->second;
  self->monitor(prefill);
  self->monitor(decode);
  if (state.watcher)
    state.watcher(worker);
}

void ask_worker(self_pointer self, const mesh_view::ask& which) {
  const auto& parts = self->state.parts;
  self
    ->request(
      parts.exchange->remote<mesh_peer_actor>(which.node.value, "mesh"), parts.pace.ask, join_atom::value)
    .then([self, which](const prefill_actor& prefill,
            const decode_actor& decode) { take_worker(self, which, prefill, decode); },
      [self, which](const caf::error&) {
        if (self->state.view->current(which))
          self->state.view->again(which.node, now());
        arm(self);
      });
}

/// A worker over there has ended: it may have another by now.
void worker_down(self_pointer self, const caf::actor_addr& which) {
  for (const auto& [node, worker] : self->state.workers) {
    if (worker.prefill->address() != which && worker.decode->address() != which)
      continue;
    self->state.view->again(node, now());
    drop_worker(self, node_name(node));
    return arm(self);
  }
}

// --- questions ---

void ask_due(self_pointer self) {
  const auto& parts = self->state.parts;
  for (const auto& which : self->state.view->due(now()))
    self
      ->request(
        parts.exchange->remote<node_actor>(which.node.value, "node"), parts.pace.ask, info_atom::value)
      .then(
        [self, which](const letter<schema::NodeStatus>& status) {
          auto& view = *self->state.view;
          if (!view.current(which))
            return;
          put_in_place(self, view.answered(which, status.read(), now()));
          tell_refusal(self);
          compare_prompt_nodes(self);
          const auto nodes = view.nodes();
          if (nodes.at(which.node).worker)
            ask_worker(self, which);
          else
            drop_worker(self, which.node);
          arm(self);
        },
        [self, which](const caf::error& why) {
          self->state.view->failed(which, from_caf_error(why), now());
          arm(self);
        });
  arm(self);
}

void tell_peers(self_pointer self) {
  auto& state = self->state;
  state.tells = false;
  const auto mail = letter<schema::NodeStatus>::make(
    [&](schema::NodeStatus::Builder b) { b.setName(text_view(state.parts.self.value)); });
  for (const auto& [name, node] : state.view->nodes())
    if (node.up)
      self->send(state.parts.exchange->remote<mesh_peer_actor>(name.value, "mesh"), mail);
}

// --- the list of nodes ---

letter<schema::NodeList> list_of(self_pointer self, const roll_call& roll) {
  const auto& state = self->state;
  std::map<node_name, link::peer_status> links;
  for (auto& each : state.parts.peers())
    links.emplace(each.node, std::move(each));
  std::vector<listed_node> out;
  const auto add = [&](const node_name& name, std::string link, std::string why) -> listed_node& {
    out.push_back({name, std::move(link), std::move(why), {}, {}});
    if (const auto said = roll.answers.find(name); said != roll.answers.end())
      out.back().status = said->second;
    else if (const auto failed = roll.failures.find(name); failed != roll.failures.end())
      out.back().why = failed->second;
    return out.back();
  };
  add(state.parts.self, "self", state.parts.registry_trouble());
  for (const auto& [name, node] : state.view->nodes()) {
    const auto link = links.find(name);
    if (node.up) {
      auto& one = add(name, "up", node.why);
      if (link != links.end())
        one.round_trip = link->second.round_trip;
      continue;
    }
    // What it, or this node, has against the other says more than that it is not there.
    const bool refused = link != links.end() && !link->second.refusal.empty();
    auto& one = add(name, "away", refused ? link->second.refusal : node.why);
    one.status.reset(); // it has gone since
  }
  return make_node_list(std::move(out));
}

void roll_done(self_pointer self, const std::shared_ptr<roll_call>& roll) {
  if (--roll->open != 0)
    return;
  self->state.roll.reset();
  const auto list = list_of(self, *roll);
  for (auto& each : roll->waiting)
    each.deliver(list);
}

void call_roll(self_pointer self) {
  auto& state = self->state;
  state.parts.agree();
  auto roll = state.roll;
  const auto ask = [&](const node_name& name, const node_actor& node) {
    ++roll->open;
    self->request(node, state.parts.pace.list, info_atom::value)
      .then(
        [self, roll, name](const letter<schema::NodeStatus>& status) {
          roll->answers.insert_or_assign(name, status);
          roll_done(self, roll);
        },
        [self, roll, name](const caf::error& why) {
          roll->failures.insert_or_assign(name, from_caf_error(why).message);
          roll_done(self, roll);
        });
  };
  ++roll->open; // until all are asked
  if (const auto own = state.offered.find("node"); own != state.offered.end())
    ask(state.parts.self, caf::actor_cast<node_actor>(own->second));
  for (const auto& [name, node] : state.view->nodes())
    if (node.up)
      ask(name, state.parts.exchange->remote<node_actor>(name.value, "node"));
  roll_done(self, roll);
}

caf::result<letter<schema::NodeList>> list_nodes(self_pointer self) {
  auto& state = self->state;
  if (state.roll && state.roll->waiting.size() >= state.parts.pace.listeners)
    return to_caf_error({errc::overloaded, "too many wait for the list of nodes", {}, {}});
  auto promise = self->make_response_promise<letter<schema::NodeList>>();
  const bool first = !state.roll;
  if (first)
    state.roll = std::make_shared<roll_call>();
  state.roll->waiting.push_back(promise);
  if (first)
    call_roll(self);
  return promise;
}

// --- this node ---

void changed(self_pointer self) {
  if (!std::exchange(self->state.tells, true))
    self->delayed_send(self, gather, join_atom::value, info_atom::value);
}

caf::result<prefill_actor, decode_actor> own_worker(self_pointer self) {
  const auto& offered = self->state.offered;
  const auto prefill = offered.find("prefill");
  const auto decode = offered.find("decode");
  if (prefill == offered.end() || decode == offered.end())
    return to_caf_error(
      {errc::unavailable, "the node " + self->state.parts.self.value + " has no worker now", {}, {}});
  return {caf::actor_cast<prefill_actor>(prefill->second), caf::actor_cast<decode_actor>(decode->second)};
}

void take_offer(self_pointer self, offer_news& news) {
  auto& offered = self->state.offered;
  if (const auto before = offered.find(news.name); before != offered.end()) {
    self->demonitor(caf::actor_cast<caf::actor_addr>(before->second));
    offered.erase(before);
  }
  if (news.actor) {
    self->monitor(news.actor);
    offered.emplace(news.name, std::move(news.actor));
  }
  changed(self);
}

void heard_down(self_pointer self, const caf::down_msg& down) {
  auto& offered = self->state.offered;
  const auto ended = std::ranges::find_if(
    offered, [&](const auto& each) { return caf::actor_cast<caf::actor_addr>(each.second) == down.source; });
  if (ended == offered.end())
    return worker_down(self, down.source);
  // Others would be handed a dead actor.
  offered.erase(ended);
  changed(self);
}

void finish(self_pointer self) {
  if (const auto roll = std::exchange(self->state.roll, nullptr))
    for (auto& each : roll->waiting)
      each.deliver(to_caf_error({errc::draining, "this node is stopping", {}, {}}));
  self->state.watcher = nullptr;
  self->state.worker_gone = nullptr;
  self->state.prompt_watcher = nullptr;
  self->quit();
}

void take_registry_news(self_pointer self, const registry_news& news) {
  auto& state = self->state;
  const auto& name = news.node.name;
  if (news.there) {
    // The link may tell of it from then on.
    state.view->known(name);
    state.parts.add_peer(news.node);
    return;
  }
  // One that did not say that it drains was killed, or only cut off from the registry: what it has is lost.
  const auto nodes = state.view->nodes();
  const auto last = nodes.find(name);
  const bool drained = last != nodes.end() && last->second.draining;
  drop_worker(self, name);
  lost(self, name, state.view->forgotten(name));
  state.parts.remove_peer(name, drained ? link::end_cause::draining : link::end_cause::peer_lost);
}

mesh_shell_actor::behavior_type shell(self_pointer self, shell_parts parts) {
  self->state.view.emplace(parts.models,
    mesh_view::pace{.again = parts.pace.again, .refresh = parts.pace.refresh, .hint = milliseconds(50)},
    parts.sessions_of);
  self->state.parts = std::move(parts);
  self->set_down_handler([self](const caf::down_msg& down) { heard_down(self, down); });
  return {
    [self](join_atom) { return own_worker(self); },
    [self](const letter<schema::NodeStatus>& hint) {
      self->state.view->hinted(node_name(text_of(hint.read().getName())), now());
      arm(self);
    },
    [self](list_atom) { return list_nodes(self); },
    [self](const registry_news& news) { take_registry_news(self, news); },
    [self](const link_news& news) {
      drop_worker(self, news.node);
      self->state.parts.agree();
      if (!news.up)
        return lost(self, news.node, self->state.view->went(news.node, news.why));
      self->state.view->came(news.node, now());
      ask_due(self);
    },
    [self](offer_news& news) { take_offer(self, news); },
    [self](const role_news& news) { put_in_place(self, self->state.view->in_use(news.name)); },
    [self](worker_watch& watch) {
      self->state.watcher = std::move(watch.call);
      self->state.worker_gone = std::move(watch.gone);
      if (self->state.watcher)
        for (const auto& [node, worker] : self->state.workers)
          self->state.watcher(worker);
    },
    [self](prompt_watch& watch) {
      self->state.prompt_watcher = std::move(watch.call);
      self->state.prompt_nodes.clear();
      compare_prompt_nodes(self);
    },
    [self](info_atom) { changed(self); },
    [self](join_atom, info_atom) { tell_peers(self); },
    [self](tick_atom) {
      if (now() < self->state.tick_at)
        return; // an earlier one than is wanted by now
      self->state.tick_at = moment::max();
      ask_due(self);
    },
    [self](stop_atom) { finish(self); },
  };
}

} // namespace

mesh_shell_actor spawn_mesh_shell(caf::actor_system& system, shell_parts parts) {
  return system.spawn(shell, std::move(parts));
}

} // namespace godwit
