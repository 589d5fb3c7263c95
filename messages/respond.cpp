#include "messages/respond.hpp"

#include "messages/actor_types.hpp"
#include "messages/catalogue.hpp"

#include <caf/system_messages.hpp>

#include <utility>

namespace godwit {

void respond(const caf::strong_actor_ptr& sender, caf::message_id id, const caf::strong_actor_ptr& from,
  caf::message content) {
  if (sender && id.is_request())
    sender->enqueue(from, id.response_id(), std::move(content), nullptr);
}

bool stood_aside(const caf::mailbox_element& what, const caf::strong_actor_ptr& self) {
  const auto& content = what.content();
  if (content.match_elements<caf::exit_msg>() || content.match_elements<caf::down_msg>()
      || content.match_elements<stop_atom>())
    return true;
  if (!content.match_elements<drain_atom>())
    return false;
  respond(what.sender, what.mid, self, caf::make_message(letter<schema::Drained>()));
  return true;
}

} // namespace godwit
