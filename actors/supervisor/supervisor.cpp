#include "actors/supervisor/supervisor.hpp"

#include "actors/node/drain_parts.hpp"
#include "actors/trace/spawn_traced.hpp"
#include "messages/actor_error.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/system_messages.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <exception>
#include <optional>
#include <utility>

namespace godwit {

namespace {

/// Starts the children again, from the one with this index on.
using restart_atom = caf::atom_constant<caf::atom("restart")>;
using inner_actor = supervisor_actor::extend<caf::reacts_to<restart_atom, std::uint64_t>>;

struct child_state {
  supervised spec;
  restart_policy policy;
  std::optional<common_actor> handle; ///< nothing while it is down
};

struct supervisor_state {
  static inline const char* name = "supervisor";
  supervisor_config config;
  std::vector<child_state> children;
  std::optional<std::uint64_t> restart_from; ///< a restart that is waiting for its time
  bool draining = false;
  std::string failure; ///< it has given up

  ~supervisor_state() {
    for (auto child = children.rbegin(); child != children.rend(); ++child)
      if (child->handle)
        caf::anon_send(*child->handle, stop_atom::value);
  }
};

using self_pointer = inner_actor::stateful_pointer<supervisor_state>;

void stop_from(self_pointer self, std::size_t first) {
  auto& children = self->state.children;
  for (auto i = children.size(); i > first; --i) {
    auto& handle = children[i - 1].handle;
    if (!handle)
      continue;
    self->demonitor(handle->address());
    self->send(*handle, stop_atom::value);
    handle.reset();
  }
}

void escalate(self_pointer self, std::size_t which, const std::string& why) {
  const auto& name = self->state.children[which].spec.name;
  self->state.failure = name + ": " + why;
  stop_from(self, which);
  self->send(self->state.config.node, escalate_atom::value, name, why);
}

void child_ended(self_pointer self, std::size_t which, bool normally, const std::string& why);

void start_from(self_pointer self, std::size_t first) {
  auto& state = self->state;
  for (auto i = first; i < state.children.size(); ++i) {
    auto& child = state.children[i];
    std::string trouble = "it gave no actor";
    try {
      if (auto handle = child.spec.start(self->system())) {
        self->monitor(handle);
        self->send(state.config.node, join_atom::value, child.spec.name, handle);
        child.handle = std::move(handle);
        continue;
      }
    } catch (const std::exception& failure) {
      trouble = failure.what();
    }
    return child_ended(self, i, false, "it cannot be started: " + trouble);
  }
}

/// Decides about a child that has ended, or could not be started.
void child_ended(self_pointer self, std::size_t which, bool normally, const std::string& why) {
  auto& state = self->state;
  state.children[which].handle.reset();
  const auto verdict = state.children[which].policy.ended(state.config.time->steady_ms(), normally);
  switch (verdict.what) {
  case restart_verdict::action::leave:
    return;
  case restart_verdict::action::escalate:
    return escalate(self, which, why);
  case restart_verdict::action::restart:
    // Those behind it hold handles of what is gone.
    stop_from(self, which);
    state.restart_from = std::min<std::uint64_t>(which, state.restart_from.value_or(which));
    self->delayed_send(self, verdict.pause, restart_atom::value, *state.restart_from);
    return;
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

letter<schema::ActorStatus> status_of(self_pointer self) {
  return letter<schema::ActorStatus>::make([&](schema::ActorStatus::Builder b) {
    const auto& state = self->state;
    b.setName("supervisor");
    const bool restarting = state.restart_from.has_value();
    b.setState(!state.failure.empty() ? "failed"
               : state.draining       ? "draining"
               : restarting           ? "starting"
                                      : "ready");
    if (!state.failure.empty())
      b.setReason(state.failure);
    else if (restarting)
      b.setReason(state.children[*state.restart_from].spec.name + " is being restarted");
    auto gauges = b.initGauges(static_cast<unsigned>(state.children.size()));
    for (unsigned i = 0; i < state.children.size(); ++i) {
      gauges[i].setName("restarts_" + state.children[i].spec.name);
      gauges[i].setValue(static_cast<double>(state.children[i].policy.restarts()));
    }
  });
}

inner_actor::behavior_type supervisor(self_pointer self, const std::shared_ptr<supervisor_config>& config) {
  auto& state = self->state;
  state.config = std::move(*config);
  for (auto& spec : state.config.children)
    state.children.push_back({spec, restart_policy(spec.when, state.config.limits), std::nullopt});
  self->set_down_handler([self](const caf::down_msg& message) { down(self, message); });
  start_from(self, 0);
  return {
    [self](status_atom) { return status_of(self); },
    [self](drain_atom) -> caf::result<letter<schema::Drained>> {
      auto promise = self->make_response_promise<letter<schema::Drained>>();
      self->state.draining = true;
      self->state.restart_from.reset();
      drain_parts(self, handles(self->state), self->state.config.drain_timeout, promise);
      return promise;
    },
    [self](stop_atom) {
      self->state.draining = true;
      stop_from(self, 0);
      self->quit();
    },
    [self](restart_atom, std::uint64_t first) {
      // One that was replaced by an earlier start, or by the end of it all, is void.
      if (self->state.restart_from != first || !self->state.failure.empty())
        return;
      self->state.restart_from.reset();
      start_from(self, first);
    },
  };
}

} // namespace

supervisor_actor spawn_supervisor(caf::actor_system& system, supervisor_config config) {
  return spawn_traced(system, supervisor, std::make_shared<supervisor_config>(std::move(config)));
}

} // namespace godwit
