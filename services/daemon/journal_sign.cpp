#include "services/daemon/journal_sign.hpp"

#include "messages/text.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <utility>

namespace godwit {

common_actor spawn_journal_sign(
  caf::actor_system& system, bool shared, std::function<std::string()> refused) {
  return system.spawn(
    [shared, refused = std::move(refused)](common_actor::pointer self) -> common_actor::behavior_type {
      return {
        [=](status_atom) {
          const auto why = refused();
          return letter<schema::ActorStatus>::make([&](schema::ActorStatus::Builder b) {
            b.setName("journal");
            b.setState(why.empty() ? "ready" : "waiting");
            b.setReason(text_view(why));
            auto gauges = b.initGauges(1);
            gauges[0].setName("shared");
            gauges[0].setValue(shared ? 1 : 0);
          });
        },
        [](drain_atom) { return letter<schema::Drained>::make([](schema::Drained::Builder) {}); },
        [=](stop_atom) { self->quit(); },
      };
    });
}

} // namespace godwit
