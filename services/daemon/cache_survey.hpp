#pragma once

#include "messages/catalogue.hpp"

#include <caf/fwd.hpp>

#include <chrono>
#include <functional>
#include <vector>

namespace godwit {

/// How long the caches of workers may take.
struct survey_limits {
  std::chrono::milliseconds probe{1'000};
  std::chrono::milliseconds suspend{60'000};
  std::size_t workers = 1024; ///< more are not asked
};

/// The caches of all workers as one. Which of them has computed a session's text is not known, and several
/// may have, so all are asked: the answer says for each tier what the worker has that has most there, and a
/// suspended text is moved down on each; a pin holds on each that has something to pin. A worker that does
/// not answer counts as one that has nothing.
/// @param workers those of now; called on the actor's thread
/// @returns `unavailable` when there is no worker, or the failure if none answers
cache_tiers_actor spawn_cache_survey(caf::actor_system& system,
  std::function<std::vector<cache_tiers_actor>()> workers, survey_limits limits = {});

} // namespace godwit
