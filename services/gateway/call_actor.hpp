#pragma once

#include "actors/trace/spawn_traced.hpp"
#include "messages/actor_types.hpp"
#include "services/gateway/atoms.hpp"
#include "services/gateway/call.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include <memory>
#include <utility>

namespace godwit {

/// A function that sends a message to an actor while it lives, without keeping it alive.
template <class Handle, class... Message>
auto teller(const Handle& target, Message... message) {
  return [weak = target->address(), message...] {
    if (const auto strong = caf::actor_cast<caf::strong_actor_ptr>(weak))
      caf::anon_send(caf::actor_cast<Handle>(strong), message...);
  };
}

/// Makes an actor one of the gateway's: it is told to stop when the gateway goes.
/// @returns false if the gateway has gone
template <class Self, class Ending>
bool join_gateway(Self* self, const call& request, Ending end) {
  if (!request.live().join(self->id(), std::move(end)))
    return false;
  self->attach_functor([request = request.without_exchange(), id = self->id()] { request.live().leave(id); });
  return true;
}

/// Runs a function of the actor and the call in an actor that lives until all its requests are answered.
template <class Function>
void in_actor(caf::actor_system& system, const call& request, Function function) {
  spawn_for(request.trace(), system, [request, function](caf::event_based_actor* self) {
    const auto end = [weak = self->address()] {
      if (const auto strong = caf::actor_cast<caf::actor>(weak))
        caf::anon_send_exit(strong, caf::exit_reason::user_shutdown);
    };
    if (join_gateway(self, request, end))
      function(self, request);
  });
}

} // namespace godwit
