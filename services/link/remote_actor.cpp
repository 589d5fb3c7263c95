#include "services/link/remote_actor.hpp"

#include "messages/actor_error.hpp"
#include "messages/respond.hpp"

#include <caf/sec.hpp>
#include <caf/system_messages.hpp>

namespace godwit::link {

std::string remote_actor::watched_name() const {
  return (where_.name.empty() ? std::string("an actor") : where_.name) + " on " + where_.node;
}

void remote_actor::enqueue(caf::mailbox_element_ptr what, caf::execution_unit*) {
  note(*what);
  const auto& content = what->content();
  if (content.match_elements<caf::exit_msg>() || content.match_elements<caf::down_msg>())
    return;
  const auto* const signature = codec_.match(content);
  if (signature == nullptr)
    return respond(what->sender, what->mid, caf::strong_actor_ptr(ctrl()),
      caf::make_message(caf::make_error(caf::sec::unexpected_message)));
  if (dead_ && !what->mid.is_request())
    return home_->letter_lost();
  if (dead_)
    return respond(what->sender, what->mid, caf::strong_actor_ptr(ctrl()),
      caf::make_message(to_caf_error({errc::peer_lost, "the node " + where_.node + " is gone", {}, {}})));
  home_->forward(*this, *signature, *what);
}

void remote_asker::enqueue(caf::mailbox_element_ptr what, caf::execution_unit*) {
  if (!what->mid.is_response())
    return;
  if (const auto home = home_.lock())
    home->answered(request_, what->content());
}

} // namespace godwit::link
