#pragma once

#include "actors/directory/session_peers.hpp"
#include "actors/session/session.hpp"
#include "messages/catalogue.hpp"

#include <chrono>
#include <cstddef>
#include <memory>

namespace godwit {

/// What bounds a directory.
struct directory_limits {
  std::size_t live = 10'000; ///< sessions with an actor; when all of them are busy, more are `overloaded`
  std::size_t idle = 1'000;  ///< of these, kept although nothing happens; the longest unused go first
  std::size_t list = 100;    ///< sessions in one page of a list
  std::size_t list_scan = 10'000; ///< heads looked at for one page, other tenants' included
  std::size_t sweep = 100;        ///< sessions looked at per tick for their expiry
  std::size_t clerks = 4;         ///< threads that wait for the journal in place of sessions

  std::chrono::milliseconds idle_after{600'000}; ///< an unused session keeps its actor for so long
  std::chrono::milliseconds tick{1'000};
  /// A session that has expired is closed; after so long more its journal is erased.
  std::chrono::milliseconds keep_expired{86'400'000};
  std::chrono::milliseconds request_timeout{10'000}; ///< for an answer of a session
  /// Running turns may go on for so long while the node drains; the rest is left to the next start.
  std::chrono::milliseconds drain{30'000};

  // With other nodes.
  /// Nodes that were not seen yet count as gone only so long after the start; calls that need to know wait.
  std::chrono::milliseconds settle{5'000};
  /// A call for a session that is live here looks after so long again whether it still is this node's.
  std::chrono::milliseconds recheck{1'000};
  /// A session that another node took is not taken back for so long while that node is not to be seen.
  std::chrono::milliseconds yield{10'000};
  std::size_t verify = 64;     ///< live sessions looked after per tick; more after a node was lost
  std::size_t passing = 4'096; ///< calls that wait for other directories; more are `overloaded`
};

struct directory_config {
  session_config sessions;
  directory_limits limits;
  /// Runs on a thread of its own, so that its waits for the disk delay nobody, and gives its sessions clerks
  /// unless they have some. Off for tests.
  bool own_thread = true;
  /// The other nodes with sessions in the same journal; null: there are none.
  std::shared_ptr<session_peers> peers = nullptr;
};

/// Starts the directory of a node. It revives the sessions whose turn was running when the node stopped. With
/// other nodes it passes calls for their sessions on, and takes sessions of lost nodes: those with a running
/// turn at once, each of them one node, the others when they are asked for.
directory_actor spawn_directory(caf::actor_system& system, directory_config config);

} // namespace godwit
