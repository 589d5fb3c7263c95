#pragma once

#include "services/mesh/role_targets.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_proxy.hpp>
#include <caf/actor_system.hpp>

#include <memory>
#include <utility>

namespace godwit {

/// The handle of a role that this node lacks. Has no mailbox and no thread: a message goes on to the target
/// of now where it is sent, so whoever asked gets the answer itself. With no target, requests are answered
/// `unavailable` and letters are dropped and counted.
///
/// It never dies by the loss of a node. It stands for actors of others, so it takes no part in this node's
/// end: `stop` is dropped, and `drain` is answered at once with nothing left; exit and down messages are
/// ignored.
class role_actor final : public caf::actor_proxy {
 public:
  role_actor(caf::actor_config& config, std::shared_ptr<role_targets> targets)
    : caf::actor_proxy(config), targets_(std::move(targets)) {}

  const char* name() const override { return "role"; }
  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* host) override;
  void kill_proxy(caf::execution_unit* host, caf::error reason) override { cleanup(std::move(reason), host); }

 private:
  std::shared_ptr<role_targets> targets_;
};

/// Makes a handle over targets, which other handles may share.
caf::strong_actor_ptr make_role_actor(caf::actor_system& system, std::shared_ptr<role_targets> targets);

/// @tparam Interface of all targets
template <class Interface>
Interface make_role_handle(caf::actor_system& system, std::shared_ptr<role_targets> targets) {
  return caf::actor_cast<Interface>(make_role_actor(system, std::move(targets)));
}

} // namespace godwit
