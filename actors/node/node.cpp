#include "actors/node/node.hpp"

#include "actors/node/drain_parts.hpp"
#include "actors/node/members.hpp"
#include "actors/trace/spawn_traced.hpp"
#include "messages/actor_error.hpp"
#include "messages/text.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>

namespace godwit {

namespace {

/// What a node says to itself.
using inner_actor = node_behaviour::extend<
  // A trace has all letters that it wants, or its time is over.
  caf::reacts_to<tick_atom, std::uint64_t>>;

/// A trace under way.
struct running_trace {
  caf::strong_actor_ptr actor;
  std::shared_ptr<letter_trace> seen;
  caf::typed_response_promise<letter<schema::Trace>> promise;
};

struct node_state {
  static inline const char* name = "node";
  node_config config;
  members<common_actor> parts;
  bool draining = false;
  std::string failure; ///< a part that cannot be kept running, and why
  std::map<std::uint64_t, running_trace> traces;
  std::uint64_t last_trace = 0;
};

using self_pointer = inner_actor::stateful_pointer<node_state>;

/// What the parts answered, in their order.
struct roll_call {
  std::vector<letter<schema::ActorStatus>> answers;
  std::size_t open = 0;
  std::function<void(std::vector<letter<schema::ActorStatus>>)> done;

  void arrived(std::size_t place, letter<schema::ActorStatus> status) {
    answers[place] = std::move(status);
    if (--open == 0)
      done(std::move(answers));
  }
};

letter<schema::ActorStatus> status_of(
  const std::string& name, const std::string& state, const std::string& reason) {
  return letter<schema::ActorStatus>::make([&](schema::ActorStatus::Builder b) {
    b.setName(text_view(name));
    b.setState(text_view(state));
    b.setReason(text_view(reason));
  });
}

/// A part's own words under the name by which it joined.
letter<schema::ActorStatus> renamed(const std::string& name, schema::ActorStatus::Reader status) {
  return letter<schema::ActorStatus>::make([&](schema::ActorStatus::Builder b) {
    b.setName(text_view(name));
    b.setState(status.getState());
    b.setReason(status.getReason());
    b.setGauges(status.getGauges());
  });
}

void ask_all(self_pointer self, std::function<void(std::vector<letter<schema::ActorStatus>>)> done) {
  const auto& parts = self->state.parts.all();
  if (parts.empty())
    return done({});
  auto roll = std::make_shared<roll_call>();
  roll->answers.resize(parts.size());
  roll->open = parts.size();
  roll->done = std::move(done);
  for (std::size_t i = 0; i < parts.size(); ++i)
    self->request(parts[i].handle, self->state.config.status_timeout, status_atom::value)
      .then([roll, i, name = parts[i].name](
              const letter<schema::ActorStatus>& status) { roll->arrived(i, renamed(name, status.read())); },
        [roll, i, name = parts[i].name](const caf::error& why) {
          const bool gone = from_caf_error(why).code == errc::peer_lost;
          roll->arrived(i, status_of(name, gone ? "stopped" : "unresponsive", "it does not answer"));
        });
}

node_health health(self_pointer self, const std::vector<letter<schema::ActorStatus>>& parts) {
  node_health out;
  for (const auto& part : parts)
    out.add(
      text_of(part.read().getName()), text_of(part.read().getState()), text_of(part.read().getReason()));
  if (!self->state.failure.empty()) {
    out.state = "failed";
    out.reason = self->state.failure + (out.reason.empty() ? "" : "; ") + out.reason;
  }
  if (self->state.draining)
    out.state = "draining";
  return out;
}

letter<schema::NodeStatus> info_of(self_pointer self, const std::vector<letter<schema::ActorStatus>>& parts) {
  return letter<schema::NodeStatus>::make([&](schema::NodeStatus::Builder b) {
    const auto& config = self->state.config;
    b.setName(config.name.value);
    b.setIncarnation(config.incarnation_now ? config.incarnation_now() : config.incarnation);
    b.setState(health(self, parts).state);
    auto roles = b.initRoles(static_cast<unsigned>(config.roles.size()));
    for (unsigned i = 0; i < config.roles.size(); ++i)
      roles.set(i, config.roles[i]);
    b.setModel(config.model);
    auto actors = b.initActors(static_cast<unsigned>(parts.size()));
    for (unsigned i = 0; i < parts.size(); ++i)
      actors.setWithCaveats(i, parts[i].read());
    b.setStartedAt(config.started_at);
    b.setFingerprint(config.fingerprint);
    b.setVersion(config.version);
    b.setCapacity(config.capacity);
  });
}

/// Its parts, those that others depend on first.
std::vector<common_actor> handles(const node_state& state) {
  std::vector<common_actor> out;
  for (const auto& part : state.parts.all())
    out.push_back(part.handle);
  return out;
}

traceable* as_traceable(const caf::strong_actor_ptr& actor) {
  return dynamic_cast<traceable*>(actor->get());
}

using trace_promise = caf::typed_response_promise<letter<schema::Trace>>;

void refuse(trace_promise& promise, error why) {
  promise.deliver(to_caf_error(why));
}

/// How long a directory may look for a session: it may have to wait for another node's answer.
constexpr std::chrono::seconds locate_patience{10};

const common_actor* part_called(const node_state& state, std::string_view name) {
  const auto& parts = state.parts.all();
  const auto found = std::ranges::find_if(parts, [&](const auto& part) { return part.name == name; });
  return found == parts.end() ? nullptr : &found->handle;
}

void begin_trace(self_pointer self, const caf::strong_actor_ptr& who, schema::TraceRequest::Reader ask,
  trace_promise promise) {
  auto& state = self->state;
  if (state.traces.size() >= most_traces)
    return refuse(promise, {errc::overloaded, "too many traces run on this node", {}, {}});
  auto* const actor = as_traceable(who);
  if (actor == nullptr)
    return refuse(promise, {errc::unsupported, "this actor's letters cannot be traced", {}, {}});
  const auto number = ++state.last_trace;
  auto seen = std::make_shared<letter_trace>(text_of(ask.getActor()),
    std::clamp(ask.getLetters(), 1U, most_traced_letters),
    [me = inner_actor(self), number] { caf::anon_send(me, tick_atom::value, number); });
  if (!actor->begin_trace(seen))
    return refuse(promise, {errc::conflict, "this actor is being traced already", {}, "trace_running"});
  state.traces.emplace(number, running_trace{who, std::move(seen), std::move(promise)});
  self->delayed_send(self, std::min(std::chrono::milliseconds(ask.getMilliseconds()), longest_trace),
    tick_atom::value, number);
}

error no_actor(const char* why) {
  return {errc::not_found, why, {}, "actor_not_found"};
}

/// Sessions are no parts of a node: its directory knows them.
void trace_session(self_pointer self, const letter<schema::TraceRequest>& mail, trace_promise promise) {
  const auto* const directory = part_called(self->state, directory_part);
  if (directory == nullptr)
    return refuse(promise, no_actor("the node has no such actor"));
  const auto ask = mail.read();
  self
    ->request(caf::actor_cast<directory_actor>(*directory), locate_patience,
      letter<schema::LocateRequest>::make([&](schema::LocateRequest::Builder b) {
        b.setSession(ask.getActor());
        b.setTenant(ask.getTenant());
      }))
    .then(
      [self, mail, promise](const session_actor& session) mutable {
        const auto who = caf::actor_cast<caf::strong_actor_ptr>(session);
        if (as_traceable(who) == nullptr)
          return refuse(promise, no_actor("the session's owner is another node"));
        begin_trace(self, who, mail.read(), std::move(promise));
      },
      [promise](const caf::error& why) mutable {
        const bool unknown = from_caf_error(why).code == errc::not_found;
        promise.deliver(unknown ? to_caf_error(no_actor("the node has no such actor or session")) : why);
      });
}

caf::result<letter<schema::Trace>> take_trace(self_pointer self, const letter<schema::TraceRequest>& mail) {
  const auto name = text_of(mail.read().getActor());
  auto promise = self->make_response_promise<letter<schema::Trace>>();
  if (const auto* const part = part_called(self->state, name))
    begin_trace(self, caf::actor_cast<caf::strong_actor_ptr>(*part), mail.read(), promise);
  else
    trace_session(self, mail, promise);
  return promise;
}

void end_trace(running_trace& trace) {
  as_traceable(trace.actor)->end_trace();
  trace.promise.deliver(trace.seen->report());
}

inner_actor::behavior_type node(self_pointer self, node_config config) {
  self->state.config = std::move(config);
  return {
    [self](info_atom) -> caf::result<letter<schema::NodeStatus>> {
      auto promise = self->make_response_promise<letter<schema::NodeStatus>>();
      ask_all(self, [self, promise](const auto& parts) mutable { promise.deliver(info_of(self, parts)); });
      return promise;
    },
    [self](join_atom, std::string& name, common_actor& part) {
      self->state.parts.join(std::move(name), std::move(part));
    },
    [self](escalate_atom, const std::string& name, const std::string& why) {
      auto& state = self->state;
      state.failure = name + " cannot be kept running: " + why;
      if (state.config.failed)
        state.config.failed(state.failure);
    },
    [self](status_atom) -> caf::result<letter<schema::ActorStatus>> {
      auto promise = self->make_response_promise<letter<schema::ActorStatus>>();
      ask_all(self, [self, promise](const auto& parts) mutable {
        const auto whole = health(self, parts);
        promise.deliver(status_of("node", whole.state, whole.reason));
      });
      return promise;
    },
    [self](drain_atom) -> caf::result<letter<schema::Drained>> {
      auto promise = self->make_response_promise<letter<schema::Drained>>();
      self->state.draining = true;
      drain_parts(self, handles(self->state), self->state.config.drain_timeout, promise);
      return promise;
    },
    [self](stop_atom) {
      for (auto& [number, trace] : self->state.traces)
        end_trace(trace);
      self->state.traces.clear();
      self->quit();
    },
    [self](leave_atom) -> caf::result<letter<schema::ActorStatus>> {
      auto& state = self->state;
      if (!state.config.leave)
        return to_caf_error({errc::unsupported, "this node's process cannot be ended this way", {}, {}});
      state.draining = true;
      state.config.leave();
      return status_of("node", "draining", "");
    },
    [self](const letter<schema::TraceRequest>& ask) { return take_trace(self, ask); },
    [self](tick_atom, std::uint64_t number) {
      auto over = self->state.traces.extract(number);
      if (!over.empty())
        end_trace(over.mapped());
    },
  };
}

} // namespace

node_behaviour spawn_node(caf::actor_system& system, node_config config) {
  return spawn_traced(system, node, std::move(config));
}

} // namespace godwit
