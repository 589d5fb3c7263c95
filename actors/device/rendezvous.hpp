#pragma once

#include "actors/device/step.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace godwit {

/// Where the roles meet before each step. Whoever was sent a step's result owes an answer, and the next step
/// waits for it, so that no step starts half full; who owes nothing may join in at any time.
class rendezvous {
 public:
  /// Takes a role's rows in place of those it had offered.
  void submit(step_role role, step_number seen, std::vector<row_offer> rows) {
    auto& place = seat_of(role);
    place.rows = std::move(rows);
    if (seen >= place.owed)
      place.owed = 0;
  }

  /// A result goes out to a role.
  void owe(step_role role, step_number step) { seat_of(role).owed = step; }

  /// Goes on without those who did not answer in time.
  void give_up() {
    for (auto& place : seats_)
      place.owed = 0;
  }

  /// Somebody still owes an answer.
  bool waiting() const { return seats_[0].owed != 0 || seats_[1].owed != 0; }
  bool empty() const { return seats_[0].rows.empty() && seats_[1].rows.empty(); }

  const std::vector<row_offer>& rows(step_role role) const { return seats_[index(role)].rows; }

  void clear() {
    for (auto& place : seats_)
      place.rows.clear();
  }

 private:
  struct seat {
    step_number owed = 0; ///< a step whose answer is missing, or 0
    std::vector<row_offer> rows;
  };

  static std::size_t index(step_role role) { return static_cast<std::size_t>(role); }
  seat& seat_of(step_role role) { return seats_[index(role)]; }

  std::array<seat, step_roles> seats_;
};

} // namespace godwit
