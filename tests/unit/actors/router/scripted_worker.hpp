#pragma once

#include "actors/router/router.hpp"
#include "actors/trace/spawn_traced.hpp"
#include "messages/actor_error.hpp"

#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace godwit::test {

/// A worker that computes nothing: it notes what it is asked, and takes it or says what a test tells it to.
struct scripted_worker {
  struct told {
    std::optional<error> refusal;
    std::vector<trace_context> traces; ///< for which it was asked, by those that it refused as well
    std::vector<request_id> taken;
    std::vector<std::string> sources; ///< of those that came with one
    std::vector<placement_actor> placements;
    std::vector<request_id> cancelled;
    bool stopped = false;
  };

  scripted_worker(caf::actor_system& system, std::string called) : name(std::move(called)) {
    prefill = spawn_traced(system, [log = log](prefill_actor::pointer self) -> prefill_actor::behavior_type {
      return {
        [log](const letter<schema::GenerateRequest>& mail, const generation_sink_actor&,
          const placement_actor& placement) -> caf::result<letter<schema::GenerateAccepted>> {
          log->traces.push_back(current_trace());
          if (log->refusal)
            return to_caf_error(*log->refusal);
          log->taken.push_back(mail.read().getRequest());
          log->placements.push_back(placement);
          return letter<schema::GenerateAccepted>();
        },
        [](const letter<schema::CreditGrant>&) {},
        [log](const letter<schema::CancelRequest>& mail) {
          for (const auto request : mail.read().getRequests())
            log->cancelled.push_back(request);
        },
        [](const letter<schema::Recompute>&) {},
        [](const letter<schema::StreamsEnded>&) {},
        [](const letter<schema::StepResult>&) {},
        [](const letter<schema::BlocksFreed>&) {},
        [](const letter<schema::CacheFound>&) {},
        [](status_atom) { return letter<schema::ActorStatus>(); },
        [](drain_atom) { return letter<schema::Drained>(); },
        [log, self](stop_atom) {
          log->stopped = true;
          self->quit();
        },
      };
    });
    intake = system.spawn([log = log](intake_actor::pointer) -> intake_actor::behavior_type {
      return {[log](const letter<schema::GenerateRequest>& mail, const generation_sink_actor&,
                const placement_actor& placement,
                const std::string& source) -> caf::result<letter<schema::GenerateAccepted>> {
        if (log->refusal)
          return to_caf_error(*log->refusal);
        log->taken.push_back(mail.read().getRequest());
        log->placements.push_back(placement);
        log->sources.push_back(source);
        return letter<schema::GenerateAccepted>();
      }};
    });
    decode = system.spawn([](decode_actor::pointer self) -> decode_actor::behavior_type {
      return {
        [](join_atom, const prefill_actor&) {},
        [](const letter<schema::GenerateRequest>&, const generation_sink_actor&, const placement_actor&) {},
        [](const letter<schema::CreditGrant>&) {},
        [](const letter<schema::CancelRequest>&) {},
        [](const letter<schema::StepResult>&) {},
        [](const letter<schema::BlocksFreed>&) {},
        [](status_atom) { return letter<schema::ActorStatus>(); },
        [](drain_atom) { return letter<schema::Drained>(); },
        [self](stop_atom) { self->quit(); },
      };
    });
  }

  worker_load load() const {
    worker_load out;
    out.name = name;
    out.capacity = 10;
    return out;
  }

  std::string name;
  std::shared_ptr<told> log = std::make_shared<told>();
  prefill_actor prefill;
  decode_actor decode;
  intake_actor intake; ///< for those that join with it
};

} // namespace godwit::test
