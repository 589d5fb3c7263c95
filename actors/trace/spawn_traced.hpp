#pragma once

#include "actors/trace/letter_trace.hpp"
#include "actors/trace/timeout_watch.hpp"
#include "actors/trace/trace_scope.hpp"

#include <caf/actor_config.hpp>
#include <caf/actor_system.hpp>
#include <caf/detail/init_fun_factory.hpp>
#include <caf/infer_handle.hpp>
#include <caf/invoke_message_result.hpp>
#include <caf/mailbox_element.hpp>

#include <string>
#include <utility>

namespace godwit {

/// An actor as its function wants it, whose letters can be traced. When a request of it times out, whoever
/// has sent it on to another node hears of that. What it handles is handled for the trace of whoever asks, or
/// for its own (see trace_scope.hpp).
template <class Actor>
class traced final : public Actor, public traceable, public trace_carrier {
 public:
  explicit traced(caf::actor_config& config, const trace_context& own = {})
    : Actor(config), trace_carrier(own) {}

  using Actor::enqueue;
  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* host) override {
    note(*what);
    timeout_watch::note(*this->ctrl(), *what);
    if (trace_carrier::any())
      what = with_trace(std::move(what));
    Actor::enqueue(std::move(what), host);
  }

  using Actor::consume;
  caf::invoke_message_result consume(caf::mailbox_element& what) override {
    if (!trace_carrier::any())
      return Actor::consume(what);
    const trace_scope scope(carried().known() ? carried() : trace_in(what));
    return Actor::consume(what);
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

/// The same for an actor that does one thing on behalf of a trace: all that it sends is sent for that one.
template <class Function, class... Arguments>
auto spawn_for(
  const trace_context& trace, caf::actor_system& system, Function function, Arguments&&... arguments) {
  using actor = caf::infer_impl_from_fun_t<Function>;
  caf::actor_config config;
  caf::detail::init_fun_factory<actor, Function> make;
  config.init_fun = make(std::move(function), std::forward<Arguments>(arguments)...);
  return caf::actor_cast<caf::infer_handle_from_fun_t<Function>>(
    system.spawn_impl<traced<actor>, caf::no_spawn_options>(config, trace));
}

} // namespace godwit
