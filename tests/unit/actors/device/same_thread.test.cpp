#include "actors/device/same_thread.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <catch2/catch.hpp>

#include <future>
#include <thread>

using namespace godwit;

namespace {

/// Tells on which thread it got its first message.
caf::behavior witness(
  caf::event_based_actor* self, const std::shared_ptr<std::promise<std::thread::id>>& where) {
  return {[self, where](int) {
    where->set_value(std::this_thread::get_id());
    self->quit();
  }};
}

} // namespace

TEST_CASE("a chosen actor runs on its sender's thread, another one where the scheduler wants it") {
  caf::actor_system_config config;
  config.set("scheduler.policy", caf::atom("sharing"));
  caf::actor_system system(config);
  const auto chosen_ran = std::make_shared<std::promise<std::thread::id>>();
  const auto other_ran = std::make_shared<std::promise<std::thread::id>>();
  const auto sender_ran = std::make_shared<std::promise<std::thread::id>>();
  // Lazy: neither is on the scheduler before it gets its message.
  auto chosen = system.spawn<caf::lazy_init>(witness, chosen_ran);
  auto other = system.spawn<caf::lazy_init>(witness, other_ran);
  system.spawn<caf::detached>([=](caf::event_based_actor* self) {
    same_thread unit(self->system());
    unit.choose(chosen);
    unit.run(self, [&] {
      self->send(other, 1);
      self->send(chosen, 1);
    });
    sender_ran->set_value(std::this_thread::get_id());
  });
  const auto sender = sender_ran->get_future().get();
  CHECK(chosen_ran->get_future().get() == sender);
  CHECK(other_ran->get_future().get() != sender);
}
