#pragma once

#include "actors/trace/letter_trace.hpp"
#include "actors/trace/timeout_watch.hpp"

#include <caf/actor_config.hpp>
#include <caf/actor_system.hpp>
#include <caf/detail/init_fun_factory.hpp>
#include <caf/infer_handle.hpp>
#include <caf/mailbox_element.hpp>

#include <string>
#include <utility>

namespace godwit {

/// An actor as its function wants it, whose letters can be traced. When a request of it times out, whoever
/// has sent it on to another node hears of that.
template <class Actor>
class traced final : public Actor, public traceable {
 public:
  using Actor::Actor;
  using Actor::enqueue;
  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* host) override {
    note(*what);
    timeout_watch::note(*this->ctrl(), *what);
    Actor::enqueue(std::move(what), host);
  }

 protected:
  const caf::actor_control_block* watched() const override { return this->ctrl(); }
  std::string watched_name() const override { return this->name(); }
};

/// Starts an actor as caf::actor_system::spawn does, so that an operator can trace it.
template <caf::spawn_options Options = caf::no_spawn_options, class Function, class... Arguments>
auto spawn_traced(caf::actor_system& system, Function function, Arguments&&... arguments) {
  using actor = caf::infer_impl_from_fun_t<Function>;
  caf::actor_config config;
  caf::detail::init_fun_factory<actor, Function> make;
  config.init_fun = make(std::move(function), std::forward<Arguments>(arguments)...);
  return caf::actor_cast<caf::infer_handle_from_fun_t<Function>>(
    system.spawn_impl<traced<actor>, Options>(config));
}

} // namespace godwit
