#include "actors/supervisor/supervisor.hpp"

#include "actors/node/drain_parts.hpp"
#include "actors/trace/spawn_traced.hpp"
#include "messages/actor_error.hpp"
#include "messages/check.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/system_messages.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

namespace godwit {

namespace {

/// Starts a child again: its index, and the number of the end for which that is.
using restart_atom = caf::atom_constant<caf::atom("restart")>;
using inner_actor = supervisor_actor::extend<caf::reacts_to<restart_atom, std::uint64_t, std::uint64_t>>;

struct child_state {
  supervised spec;
  restart_policy policy;
  std::vector<std::size_t> uses;      ///< indices
  std::optional<common_actor> handle; ///< nothing while it is down
  std::uint64_t waits = 0;            ///< for its restart, by this number; 0: it does not
  bool left = false;                  ///< it has ended, as its policy has it
};

struct supervisor_state {
  static inline const char* name = "supervisor";
  supervisor_config config;
  std::vector<child_state> children;
  std::uint64_t ends = 0; ///< of children, so far
  bool draining = false;
  std::string failure; ///< it has given up

  ~supervisor_state() {
    for (auto child = children.rbegin(); child != children.rend(); ++child)
      if (child->handle)
        caf::anon_send(*child->handle, stop_atom::value);
  }
};

using self_pointer = inner_actor::stateful_pointer<supervisor_state>;

void stop_child(self_pointer self, child_state& child) {
  if (!child.handle)
    return;
  self->demonitor(child.handle->address());
  self->send(*child.handle, stop_atom::value);
  child.handle.reset();
}

/// Stops those that hold a handle of this one, and those that hold theirs: the last first.
void stop_users(self_pointer self, std::size_t of) {
  auto& children = self->state.children;
  std::vector<bool> affected(children.size(), false);
  affected[of] = true;
  for (auto i = of + 1; i < children.size(); ++i)
    affected[i] = std::ranges::any_of(children[i].uses, [&](std::size_t used) { return affected[used]; });
  for (auto i = children.size(); i > of + 1; --i)
    if (affected[i - 1])
      stop_child(self, children[i - 1]);
}

void escalate(self_pointer self, std::size_t which, const std::string& why) {
  const auto& name = self->state.children[which].spec.name;
  self->state.failure = name + ": " + why;
  self->send(self->state.config.node, escalate_atom::value, name, why);
}

/// Decides about a child that has ended, or could not be started.
void child_ended(self_pointer self, std::size_t which, bool normally, const std::string& why) {
  auto& state = self->state;
  auto& child = state.children[which];
  child.handle.reset();
  const auto verdict = child.policy.ended(state.config.time->steady_ms(), normally);
  if (verdict.what == restart_verdict::action::leave) {
    child.left = true;
    return;
  }
  // They hold handles of what is gone.
  stop_users(self, which);
  if (verdict.what == restart_verdict::action::escalate)
    return escalate(self, which, why);
  child.waits = ++state.ends;
  self->delayed_send(self, verdict.pause, restart_atom::value, std::uint64_t{which}, child.waits);
}

/// @returns why it could not be started
std::optional<std::string> start_child(self_pointer self, child_state& child) {
  try {
    auto handle = child.spec.start(self->system());
    if (!handle)
      return "it gave no actor";
    self->monitor(handle);
    self->send(self->state.config.node, join_atom::value, child.spec.name, handle);
    child.handle = std::move(handle);
    return std::nullopt;
  } catch (const std::exception& failure) {
    return failure.what();
  }
}

/// Starts what is down, does not wait for its time, and has all that it uses.
void start_due(self_pointer self) {
  auto& children = self->state.children;
  for (std::size_t i = 0; i < children.size() && self->state.failure.empty(); ++i) {
    auto& child = children[i];
    if (child.handle || child.left || child.waits != 0
        || !std::ranges::all_of(
          child.uses, [&](std::size_t used) { return children[used].handle.has_value(); }))
      continue;
    if (const auto trouble = start_child(self, child))
      child_ended(self, i, false, "it cannot be started: " + *trouble);
  }
}

void down(self_pointer self, const caf::down_msg& message) {
  auto& state = self->state;
  if (state.draining || !state.failure.empty())
    return;
  for (std::size_t i = 0; i < state.children.size(); ++i)
    if (state.children[i].handle && state.children[i].handle->address() == message.source)
      return child_ended(self, i, !message.reason,
        message.reason ? from_caf_error(message.reason).message : std::string("it ended of itself"));
}

/// The children that are up, in their order.
std::vector<common_actor> handles(const supervisor_state& state) {
  std::vector<common_actor> out;
  for (const auto& child : state.children)
    if (child.handle)
      out.push_back(*child.handle);
  return out;
}

/// The children that are being started again.
std::string restarting(const supervisor_state& state) {
  std::string out;
  for (const auto& child : state.children)
    if (child.waits != 0)
      out += (out.empty() ? "" : "; ") + child.spec.name + " is being restarted";
  return out;
}

letter<schema::ActorStatus> status_of(self_pointer self) {
  return letter<schema::ActorStatus>::make([&](schema::ActorStatus::Builder b) {
    const auto& state = self->state;
    b.setName("supervisor");
    const auto waiting = restarting(state);
    b.setState(state.draining           ? "draining"
               : !state.failure.empty() ? "failed"
               : !waiting.empty()       ? "starting"
                                        : "ready");
    if (!state.failure.empty())
      b.setReason(state.failure);
    else if (!waiting.empty())
      b.setReason(waiting);
    auto gauges = b.initGauges(static_cast<unsigned>(state.children.size()));
    for (unsigned i = 0; i < state.children.size(); ++i) {
      gauges[i].setName("restarts_" + state.children[i].spec.name);
      gauges[i].setValue(static_cast<double>(state.children[i].policy.restarts()));
    }
  });
}

/// Indices of children before one, by their names.
std::vector<std::size_t> indices(const std::vector<child_state>& before, const supervised& spec) {
  std::vector<std::size_t> out;
  for (const auto& name : spec.uses) {
    const auto found = std::ranges::find(before, name, [](const auto& each) { return each.spec.name; });
    GODWIT_CHECK(found != before.end());
    out.push_back(static_cast<std::size_t>(found - before.begin()));
  }
  return out;
}

inner_actor::behavior_type supervisor(self_pointer self, const std::shared_ptr<supervisor_config>& config) {
  auto& state = self->state;
  state.config = std::move(*config);
  for (const auto& spec : state.config.children) {
    child_state child{spec, restart_policy(spec.when, spec.limits), indices(state.children, spec), {}};
    state.children.push_back(std::move(child));
  }
  self->set_down_handler([self](const caf::down_msg& message) { down(self, message); });
  start_due(self);
  return {
    [self](status_atom) { return status_of(self); },
    [self](drain_atom) -> caf::result<letter<schema::Drained>> {
      auto promise = self->make_response_promise<letter<schema::Drained>>();
      self->state.draining = true;
      drain_parts(self, handles(self->state), self->state.config.drain_timeout, promise);
      return promise;
    },
    [self](stop_atom) {
      auto& children = self->state.children;
      self->state.draining = true;
      for (auto child = children.rbegin(); child != children.rend(); ++child)
        stop_child(self, *child);
      self->quit();
    },
    [self](restart_atom, std::uint64_t which, std::uint64_t end) {
      auto& child = self->state.children[which];
      // One that was replaced, or that came behind the end of it all, is void.
      if (child.waits != end || self->state.draining || !self->state.failure.empty())
        return;
      child.waits = 0;
      start_due(self);
    },
  };
}

} // namespace

supervisor_actor spawn_supervisor(caf::actor_system& system, supervisor_config config) {
  return spawn_traced(system, supervisor, std::make_shared<supervisor_config>(std::move(config)));
}

} // namespace godwit
