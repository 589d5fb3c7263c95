#pragma once

#include "messages/actor_error.hpp"
#include "messages/catalogue.hpp"

#include <caf/typed_response_promise.hpp>

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

namespace godwit {

/// Drains parts from the last to the first, each when the one behind it is done, since it works with those
/// before it. Then answers with the sum of what was left. A part that has ended has nothing left; one that
/// does not answer in time counts as one.
/// @tparam Self pointer to the actor that asks
/// @param patience for each part
template <class Self>
void drain_parts(Self self, std::vector<common_actor> parts, std::chrono::milliseconds patience,
  caf::typed_response_promise<letter<schema::Drained>> promise, std::uint32_t remaining = 0) {
  if (parts.empty()) {
    promise.deliver(
      letter<schema::Drained>::make([&](schema::Drained::Builder b) { b.setRemaining(remaining); }));
    return;
  }
  const auto last = std::move(parts.back());
  parts.pop_back();
  self->request(last, patience, drain_atom::value)
    .then(
      [=](const letter<schema::Drained>& drained) {
        drain_parts(self, parts, patience, promise, remaining + drained.read().getRemaining());
      },
      [=](const caf::error& why) {
        const bool late = from_caf_error(why).code == errc::deadline;
        drain_parts(self, parts, patience, promise, remaining + (late ? 1 : 0));
      });
}

} // namespace godwit
