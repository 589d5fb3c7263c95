#include "actors/supervisor/part_handle.hpp"

#include "messages/actor_error.hpp"
#include "messages/respond.hpp"

#include <caf/actor_config.hpp>
#include <caf/actor_proxy.hpp>
#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <caf/make_actor.hpp>
#include <caf/message.hpp>

namespace godwit {

namespace {

class part_actor final : public caf::actor_proxy {
 public:
  part_actor(caf::actor_config& config, std::shared_ptr<part_place> place)
    : caf::actor_proxy(config), place_(std::move(place)) {}

  const char* name() const override { return "part"; }
  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* host) override {
    const caf::strong_actor_ptr self(ctrl());
    if (!stood_aside(*what, self))
      place_->pass(self, std::move(what), host);
  }
  void kill_proxy(caf::execution_unit* host, caf::error reason) override { cleanup(std::move(reason), host); }

 private:
  const std::shared_ptr<part_place> place_;
};

} // namespace

void part_place::put(const caf::strong_actor_ptr& actor) {
  caf::strong_actor_ptr before; // let go without the lock
  std::uint64_t generation = 0;
  {
    const std::lock_guard lock(mutex_);
    if (closed_)
      return;
    before = std::exchange(actor_, actor);
    generation = ++generation_;
    asked_.clear();
  }
  // Called at once, should it have ended already.
  actor->get()->attach_functor([weak = weak_from_this(), generation] {
    if (const auto self = weak.lock())
      self->ended(generation);
  });
}

void part_place::close() {
  caf::strong_actor_ptr last;
  const std::lock_guard lock(mutex_);
  closed_ = true;
  asked_.clear();
  last.swap(actor_);
}

void part_place::ended(std::uint64_t which) {
  caf::strong_actor_ptr last;
  std::deque<asked> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (which != generation_)
      return;
    last.swap(actor_);
    waiting.swap(asked_);
  }
  const auto why = to_caf_error({errc::peer_lost, "the " + name_ + " has ended", {}, {}});
  for (const auto& each : waiting)
    respond(each.sender.lock(), each.id, last, caf::make_message(why));
}

void part_place::pass(
  const caf::strong_actor_ptr& from, caf::mailbox_element_ptr what, caf::execution_unit* host) {
  caf::strong_actor_ptr to;
  bool closed = false;
  {
    const std::lock_guard lock(mutex_);
    to = actor_;
    closed = closed_;
    if (to && what->sender && what->mid.is_request()) {
      if (asked_.size() >= most_asked)
        asked_.pop_front();
      asked_.push_back({caf::weak_actor_ptr(what->sender.get()), what->mid});
    }
  }
  if (to) {
    to->get()->enqueue(std::move(what), host);
    return;
  }
  respond(what->sender, what->mid, from,
    caf::make_message(
      to_caf_error(closed ? error{errc::draining, "this node is stopping", {}, {}}
                          : error{errc::unavailable, "the " + name_ + " is being started again", {}, {}})));
}

caf::strong_actor_ptr make_part_actor(caf::actor_system& system, std::shared_ptr<part_place> place) {
  caf::actor_config config;
  return caf::make_actor<part_actor, caf::strong_actor_ptr>(
    system.next_actor_id(), system.node(), &system, config, std::move(place));
}

void end_part_actor(const caf::strong_actor_ptr& actor) {
  static_cast<part_actor*>(actor->get())
    ->kill_proxy(nullptr, caf::make_error(caf::exit_reason::user_shutdown));
}

} // namespace godwit
