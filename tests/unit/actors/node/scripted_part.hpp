#pragma once

#include "messages/catalogue.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace godwit::test {

/// A system whose actors run when the test says so.
class still_system {
 public:
  still_system()
    : system(settings_), scheduler(dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler())) {}
  ~still_system() { finish(); }

  /// Stops what is to be stopped: before things go that the actors use.
  void finish() {
    for (const auto& handle : std::exchange(stops, {}))
      caf::anon_send(handle, stop_atom::value);
    scheduler.run();
  }
  void pass(std::int64_t milliseconds) {
    scheduler.advance_time(std::chrono::milliseconds(milliseconds));
    scheduler.run();
  }
  template <class T, class Handle, class... Args>
  std::shared_ptr<std::optional<T>> ask(const Handle& handle, Args... args) {
    auto answer = std::make_shared<std::optional<T>>();
    system.spawn([=](caf::event_based_actor* self) {
      self->request(handle, std::chrono::seconds(1'000), args...)
        .then([answer](const T& value) { *answer = value; }, [](const caf::error&) {});
    });
    scheduler.run();
    return answer;
  }

 private:
  struct test_settings : caf::actor_system_config {
    test_settings() { set("scheduler.policy", caf::atom("testing")); }
  };
  test_settings settings_;

 public:
  caf::actor_system system;
  caf::scheduler::test_coordinator& scheduler;
  std::vector<common_actor> stops;
};

/// How a part of a node behaves, and what became of it.
struct part_script {
  std::string state = "ready";
  bool answers = true; ///< to status and drain; else never
  std::uint32_t remaining = 0;
  std::vector<std::string>* log = nullptr;
};

inline common_actor spawn_part(
  caf::actor_system& system, const std::string& name, const part_script& script) {
  return system.spawn([=](common_actor::pointer self) -> common_actor::behavior_type {
    return {
      [=](status_atom) -> caf::result<letter<schema::ActorStatus>> {
        auto promise = self->make_response_promise<letter<schema::ActorStatus>>();
        if (script.answers)
          promise.deliver(letter<schema::ActorStatus>::make([&](schema::ActorStatus::Builder b) {
            b.setName("its own name");
            b.setState(script.state);
            b.initGauges(1)[0].setName("g");
          }));
        return promise;
      },
      [=](drain_atom) -> caf::result<letter<schema::Drained>> {
        auto promise = self->make_response_promise<letter<schema::Drained>>();
        if (script.log != nullptr)
          script.log->push_back("drain " + name);
        if (script.answers)
          promise.deliver(letter<schema::Drained>::make(
            [&](schema::Drained::Builder b) { b.setRemaining(script.remaining); }));
        return promise;
      },
      [=](stop_atom) {
        if (script.log != nullptr)
          script.log->push_back("stop " + name);
        self->quit();
      },
    };
  });
}

} // namespace godwit::test
