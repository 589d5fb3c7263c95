#pragma once

#include "actors/session/session.hpp"
#include "messages/catalogue.hpp"

#include <chrono>
#include <cstddef>

namespace godwit {

/// What bounds a directory.
struct directory_limits {
  std::size_t live = 10'000; ///< sessions with an actor; when all of them are busy, more are `overloaded`
  std::size_t idle = 1'000;  ///< of these, kept although nothing happens; the longest unused go first
  std::size_t list = 100;    ///< sessions in one page of a list
  std::size_t list_scan = 10'000; ///< heads looked at for one page, other tenants' included
  std::size_t sweep = 100;        ///< sessions looked at per tick for their expiry

  std::chrono::milliseconds idle_after{600'000}; ///< an unused session keeps its actor for so long
  std::chrono::milliseconds tick{1'000};
  /// A session that has expired is closed; after so long more its journal is erased.
  std::chrono::milliseconds keep_expired{86'400'000};
  std::chrono::milliseconds request_timeout{10'000}; ///< for an answer of a session
  /// Running turns may go on for so long while the node drains; the rest is left to the next start.
  std::chrono::milliseconds drain{30'000};
};

struct directory_config {
  session_config sessions;
  directory_limits limits;
  /// Runs on a thread of its own, so that its waits for the disk delay nobody. Off for tests.
  bool own_thread = true;
};

/// Starts the directory of a node. It revives the sessions whose turn was running when the node stopped.
directory_actor spawn_directory(caf::actor_system& system, directory_config config);

} // namespace godwit
