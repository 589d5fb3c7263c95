#pragma once

#include "messages/ids.hpp"

#include <caf/actor_addr.hpp>

#include <map>
#include <set>
#include <unordered_map>
#include <vector>

namespace godwit {

/// Which actors a worker's requests depend on: who placed each, and who takes its tokens. Each actor is
/// monitored once, however many requests it has.
class request_watch {
 public:
  /// @returns whether the actor is to be monitored from now on
  bool add(request_id request, const caf::actor_addr& actor) {
    of_[request].push_back(actor);
    const auto [place, fresh] = by_actor_.try_emplace(actor);
    place->second.insert(request);
    return fresh;
  }
  /// The request is over. @returns the actors that need not be monitored any more
  std::vector<caf::actor_addr> remove(request_id request) {
    std::vector<caf::actor_addr> done;
    const auto actors = of_.extract(request);
    if (actors.empty())
      return done;
    for (const auto& actor : actors.mapped()) {
      const auto place = by_actor_.find(actor);
      if (place == by_actor_.end())
        continue;
      place->second.erase(request);
      if (place->second.empty()) {
        by_actor_.erase(place);
        done.push_back(actor);
      }
    }
    return done;
  }
  /// The requests of an actor that is gone.
  std::vector<request_id> of(const caf::actor_addr& actor) const {
    const auto place = by_actor_.find(actor);
    if (place == by_actor_.end())
      return {};
    return {place->second.begin(), place->second.end()};
  }
  /// Actors that are monitored.
  std::size_t size() const { return by_actor_.size(); }

 private:
  std::unordered_map<request_id, std::vector<caf::actor_addr>> of_;
  std::map<caf::actor_addr, std::set<request_id>> by_actor_;
};

} // namespace godwit
