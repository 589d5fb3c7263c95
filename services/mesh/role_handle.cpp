#include "services/mesh/role_handle.hpp"

#include "messages/actor_error.hpp"
#include "messages/actor_types.hpp"

#include <caf/actor_config.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/make_actor.hpp>
#include <caf/message.hpp>
#include <caf/system_messages.hpp>

namespace godwit {

namespace {

void respond(const caf::mailbox_element& what, const caf::strong_actor_ptr& from, caf::message content) {
  if (what.sender && what.mid.is_request())
    what.sender->enqueue(from, what.mid.response_id(), std::move(content), nullptr);
}

} // namespace

void role_actor::enqueue(caf::mailbox_element_ptr what, caf::execution_unit* host) {
  const auto& content = what->content();
  if (content.match_elements<caf::exit_msg>() || content.match_elements<caf::down_msg>()
      || content.match_elements<stop_atom>())
    return;
  const caf::strong_actor_ptr self(ctrl());
  if (content.match_elements<drain_atom>())
    return respond(*what, self, caf::make_message(letter<schema::Drained>()));
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
  respond(*what, self, caf::make_message(to_caf_error(targets_->refusal())));
}

caf::strong_actor_ptr make_role_actor(caf::actor_system& system, std::shared_ptr<role_targets> targets) {
  caf::actor_config config;
  return caf::make_actor<role_actor, caf::strong_actor_ptr>(
    system.next_actor_id(), system.node(), &system, config, std::move(targets));
}

} // namespace godwit
