#include "actors/directory/directory.hpp"

#include "actors/directory/directory_shell.hpp"
#include "actors/trace/spawn_traced.hpp"
#include "messages/actor_error.hpp"

#include <caf/actor_system.hpp>
#include <caf/spawn_options.hpp>
#include <caf/system_messages.hpp>
#include <caf/typed_response_promise.hpp>

#include <memory>
#include <utility>

namespace godwit {

namespace {

using detail::directory_shell;
using self_pointer = directory_shell::self_pointer;

/// An answer that comes later, as a callback.
template <class T>
auto deliver_to(caf::typed_response_promise<T> promise) {
  return [promise](result<T> outcome) mutable {
    if (outcome)
      promise.deliver(std::move(*outcome));
    else
      promise.deliver(to_caf_error(outcome.error()));
  };
}

directory_shell::inner_actor::behavior_type directory(
  self_pointer self, const std::shared_ptr<directory_config>& config) {
  self->state.shell = std::make_unique<directory_shell>(self, std::move(*config));
  self->set_down_handler([self](const caf::down_msg& down) { self->state.shell->session_down(down); });
  self->state.shell->begin();
  return {
    [self](const letter<schema::SessionSettings>& mail) -> caf::result<letter<schema::SessionInfo>> {
      auto opened = self->state.shell->create(mail.read());
      if (!opened)
        return to_caf_error(opened.error());
      return std::move(*opened);
    },
    [self](const letter<schema::LocateRequest>& mail) -> caf::result<session_actor> {
      auto promise = self->make_response_promise<session_actor>();
      self->state.shell->locate(
        directory_shell::question_of(mail.read()), deliver_to<session_actor>(promise));
      return promise;
    },
    [self](const letter<schema::ListRequest>& mail) -> caf::result<letter<schema::SessionList>> {
      auto promise = self->make_response_promise<letter<schema::SessionList>>();
      self->state.shell->list(mail.read(), deliver_to<letter<schema::SessionList>>(promise));
      return promise;
    },
    [self](
      erase_atom, const letter<schema::LocateRequest>& mail) -> caf::result<letter<schema::SessionInfo>> {
      auto promise = self->make_response_promise<letter<schema::SessionInfo>>();
      self->state.shell->erase(
        directory_shell::question_of(mail.read()), deliver_to<letter<schema::SessionInfo>>(promise));
      return promise;
    },
    [self](status_atom) { return self->state.shell->status(); },
    [self](drain_atom) -> caf::result<letter<schema::Drained>> {
      auto promise = self->make_response_promise<letter<schema::Drained>>();
      self->state.shell->drain([promise](std::uint32_t remaining) mutable {
        promise.deliver(
          letter<schema::Drained>::make([&](schema::Drained::Builder b) { b.setRemaining(remaining); }));
      });
      return promise;
    },
    [self](stop_atom) {
      self->state.shell->refuse_waiting();
      self->quit();
    },
    [self](tick_atom) { self->state.shell->tick(); },
    [self](detail::scan_atom) { self->state.shell->scan_page(); },
    [self](detail::lost_atom, const std::string& node) { self->state.shell->node_lost(node_name(node)); },
  };
}

} // namespace

directory_actor spawn_directory(caf::actor_system& system, directory_config config) {
  // CAF copies the arguments of an actor that it spawns.
  auto shared = std::make_shared<directory_config>(std::move(config));
  if (shared->own_thread)
    return spawn_traced<caf::detached>(system, directory, std::move(shared));
  return spawn_traced(system, directory, std::move(shared));
}

} // namespace godwit
