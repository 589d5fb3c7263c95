#include "services/mesh/role_handle.hpp"

#include "messages/actor_error.hpp"
#include "messages/respond.hpp"

#include <caf/actor_config.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/make_actor.hpp>
#include <caf/message.hpp>

namespace godwit {

void role_actor::enqueue(caf::mailbox_element_ptr what, caf::execution_unit* host) {
  const caf::strong_actor_ptr self(ctrl());
  if (stood_aside(*what, self))
    return;
  if (!what->mid.is_request()) {
    auto listeners = targets_->listeners();
    if (listeners.empty()) {
      ++targets_->dropped;
      return;
    }
    for (std::size_t i = 1; i < listeners.size(); ++i)
      listeners[i]->enqueue(what->sender, what->mid, what->copy_content_to_message(), host);
    listeners.front()->get()->enqueue(std::move(what), host);
    return;
  }
  if (const auto target = targets_->current()) {
    target->get()->enqueue(std::move(what), host);
    return;
  }
  ++targets_->refused;
  respond(what->sender, what->mid, self, caf::make_message(to_caf_error(targets_->refusal())));
}

caf::strong_actor_ptr make_role_actor(caf::actor_system& system, std::shared_ptr<role_targets> targets) {
  caf::actor_config config;
  return caf::make_actor<role_actor, caf::strong_actor_ptr>(
    system.next_actor_id(), system.node(), &system, config, std::move(targets));
}

} // namespace godwit
