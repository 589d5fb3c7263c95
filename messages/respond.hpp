#pragma once

#include <caf/actor_control_block.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/message.hpp>
#include <caf/message_id.hpp>

namespace godwit {

/// Answers a request of CAF in place of the actor that was asked. Nothing happens if `id` is of no request.
void respond(const caf::strong_actor_ptr& sender, caf::message_id id, const caf::strong_actor_ptr& from,
  caf::message content);

/// For a handle that stands for other actors, and so takes no part in this node's end: `stop`, exit and down
/// messages are dropped, and `drain` is answered with nothing left. @returns whether the message was one of
/// these
bool stood_aside(const caf::mailbox_element& what, const caf::strong_actor_ptr& self);

} // namespace godwit
