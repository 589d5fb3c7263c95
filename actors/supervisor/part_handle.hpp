#pragma once

#include "messages/catalogue.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/fwd.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/message_id.hpp>

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace godwit {

/// Where the letters to a part of this node go, which is another actor after each restart. Any thread may
/// call.
class part_place : public std::enable_shared_from_this<part_place> {
 public:
  /// Requests that are remembered, to fail them should the part end before it has answered; those before them
  /// end with their time.
  static constexpr std::size_t most_asked = 256;

  explicit part_place(std::string name) : name_(std::move(name)) {}

  /// The part is this actor from now on.
  void put(const caf::strong_actor_ptr& actor);
  /// There is none any more.
  void close();

  /// Passes a message on to the actor of now. Without one, requests fail with `unavailable` (`draining` after
  /// close()) and letters are dropped.
  void pass(const caf::strong_actor_ptr& from, caf::mailbox_element_ptr what, caf::execution_unit* host);

 private:
  struct asked {
    caf::weak_actor_ptr sender;
    caf::message_id id;
  };

  void ended(std::uint64_t which);

  const std::string name_;
  std::mutex mutex_;
  caf::strong_actor_ptr actor_;
  std::uint64_t generation_ = 0; ///< of the actor
  bool closed_ = false;
  std::deque<asked> asked_; ///< of this actor; those that were answered among them, who take a second one for
                            ///< what came too late
};

/// An actor that stands for a place: no mailbox and no thread. It never dies by the end of a part, and takes
/// no part in the node's end: `stop`, exit and down messages are dropped, `drain` is answered with nothing
/// left.
caf::strong_actor_ptr make_part_actor(caf::actor_system& system, std::shared_ptr<part_place> place);
/// Lets go of whoever monitors such an actor.
void end_part_actor(const caf::strong_actor_ptr& actor);

/// A handle of a part that stays the same while its supervisor starts the part anew, so that who holds it
/// need not be started anew. Whatever the part was asked when it ends fails with `peer_lost` at once.
template <class Interface>
class part_handle {
 public:
  part_handle() = default;
  part_handle(caf::actor_system& system, std::string name)
    : place_(std::make_shared<part_place>(std::move(name))), actor_(make_part_actor(system, place_)) {}

  Interface handle() const { return caf::actor_cast<Interface>(actor_); }
  void put(const Interface& part) { place_->put(caf::actor_cast<caf::strong_actor_ptr>(part)); }
  /// Before the actor system ends; nothing happens without a place.
  void close() {
    if (!place_)
      return;
    place_->close();
    end_part_actor(actor_);
  }

 private:
  std::shared_ptr<part_place> place_;
  caf::strong_actor_ptr actor_;
};

} // namespace godwit
