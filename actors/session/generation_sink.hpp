#pragma once

#include "messages/catalogue.hpp"

#include <caf/actor_control_block.hpp>
#include <caf/fwd.hpp>

#include <functional>
#include <vector>

namespace godwit {

/// Where the tokens of one generation go: passes them on to a session's mailbox, without a hop or a thread of
/// its own. Router and worker hold it as long as they have to do with the generation, and another node's hold
/// ends when that node is lost. So when nobody holds it any more, no token can come, whoever was lost on the
/// way: that is what `released` is told, on any thread.
/// @param target takes TokenBatch letters
generation_sink_actor make_generation_sink(
  caf::actor_system& system, caf::strong_actor_ptr target, std::function<void()> released);

/// The sinks of a session, so that whoever watches them learns of its end. Does not keep them.
class generation_sinks {
 public:
  ~generation_sinks() { end(); }

  void add(const generation_sink_actor& sink);
  /// The session is gone: so are they.
  void end();

 private:
  std::vector<caf::weak_actor_ptr> sinks_;
};

} // namespace godwit
