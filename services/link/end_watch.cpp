#include "services/link/end_watch.hpp"

#include <caf/abstract_actor.hpp>
#include <caf/attachable.hpp>

#include <utility>

namespace godwit::link {

class end_watch::notice final : public caf::attachable {
 public:
  notice(std::weak_ptr<end_watch> home, caf::actor_id actor) : home_(std::move(home)), actor_(actor) {}
  ~notice() override {
    // A proxy may go without an end.
    if (const auto home = told_ ? nullptr : home_.lock())
      home->forget(actor_);
  }

  void actor_exited(const caf::error& reason, caf::execution_unit*) override {
    told_ = true;
    const auto home = home_.lock();
    if (!home)
      return;
    // First: whoever asks for it from here on attaches anew, and hears of it at once.
    home->forget(actor_);
    home->tell_(actor_, reason);
  }

 private:
  std::weak_ptr<end_watch> home_;
  caf::actor_id actor_;
  bool told_ = false;
};

void end_watch::watch(const caf::strong_actor_ptr& actor) {
  const auto id = actor->id();
  {
    const std::lock_guard lock(mutex_);
    const auto [place, fresh] = known_.try_emplace(id, false);
    if (place->second)
      return;
  }
  // Without the lock, since it may tell. Two threads that come at once attach twice: neither must go on
  // before one of them has.
  actor->get()->attach(std::make_unique<notice>(weak_from_this(), id));
  const std::lock_guard lock(mutex_);
  if (const auto found = known_.find(id); found != known_.end())
    found->second = true;
}

std::size_t end_watch::size() const {
  const std::lock_guard lock(mutex_);
  return known_.size();
}

void end_watch::forget(caf::actor_id actor) {
  const std::lock_guard lock(mutex_);
  known_.erase(actor);
}

} // namespace godwit::link
