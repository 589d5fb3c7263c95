#pragma once

#include <caf/abstract_actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/execution_unit.hpp>
#include <caf/resumable.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>

#include <limits>
#include <vector>

namespace godwit {

/// Runs chosen actors on the thread of the one that sends to them: an answer that somebody waits for need not
/// wait for another thread to wake up, which takes longer than the answer itself, and much longer on a busy
/// machine. The chosen actors stay ordinary ones: whoever else sends to them has the scheduler run them, and
/// an actor runs in one place at a time, wherever that is.
class same_thread final : public caf::execution_unit {
 public:
  explicit same_thread(caf::actor_system& system) : execution_unit(&system) {}

  template <class Handle>
  void choose(const Handle& actor) {
    chosen_.push_back(dynamic_cast<caf::resumable*>(caf::actor_cast<caf::abstract_actor*>(actor)));
  }

  /// CAF: an actor has got a message from us and is to run. All but the chosen ones go to the scheduler.
  void exec_later(caf::resumable* job) override {
    for (const auto* actor : chosen_)
      if (actor == job) {
        jobs_.push_back(job);
        return;
      }
    system().scheduler().enqueue(job);
  }

  /// Calls `send` with this unit as the place where `self` runs, then runs the chosen actors that it sent to,
  /// and those chosen ones that they sent to.
  template <class Self, class Send>
  void run(Self* self, Send&& send) {
    auto* before = self->context();
    self->context(this);
    send();
    self->context(before);
    // Grows while it is walked.
    for (std::size_t i = 0; i < jobs_.size(); ++i)
      run(jobs_[i]);
    jobs_.clear();
  }

 private:
  /// As CAF's own workers do: a job comes with a reference, which goes back unless it is to run again.
  void run(caf::resumable* job) {
    if (job->resume(this, std::numeric_limits<std::size_t>::max()) == caf::resumable::resume_later)
      system().scheduler().enqueue(job);
    else
      caf::intrusive_ptr_release(job);
  }

  std::vector<caf::resumable*> chosen_;
  std::vector<caf::resumable*> jobs_;
};

} // namespace godwit
