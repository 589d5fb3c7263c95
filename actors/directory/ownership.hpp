#pragma once

#include "actors/directory/session_peers.hpp"
#include "actors/session/journal.hpp"
#include "messages/catalogue.hpp"
#include "messages/ids.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

namespace godwit {

/// Where a session is to be looked for, by the name in its journal's head and by what the mesh knows of that
/// node. Only a guess decides here; who really owns a session the journal's epoch does. Times are steady
/// milliseconds.
class ownership {
 public:
  struct limits {
    /// A node that this one has not seen yet counts as gone only so long after the start.
    std::chrono::milliseconds settle;
    /// What another node took is not taken back for so long while that node is not to be seen from here:
    /// perhaps only the way to it is cut, and the two would take it from each other for ever.
    std::chrono::milliseconds yield;
  };
  enum class place {
    here,    ///< it is this node's
    there,   ///< another node that is up has it
    gone,    ///< its node is lost: whoever is asked for it may take it
    unknown, ///< its node was not seen yet, which says little so soon after the start
    yielded, ///< a node that is not to be seen from here took it a moment ago
  };
  struct finding {
    place where = place::here;
    directory_actor directory; ///< if there
  };

  /// @param peers null: there are no other nodes, and everything is here
  ownership(node_name self, std::shared_ptr<const session_peers> peers, const limits& with, std::int64_t now);

  bool alone() const { return !peers_; }
  bool settled(std::int64_t now) const { return now >= settled_at_; }

  finding of(const journal_head& head, std::int64_t now) const;
  /// Whether this node is the one to take a session of a lost node without being asked.
  /// @param alive as the mesh says now
  bool ours_to_take(const session_id& session, const std::vector<node_name>& alive) const;
  /// Whether another node has a session that is live here: it has claimed it since the epoch in which this
  /// one knew it, or it had it all the time and is to be seen again.
  bool is_taken(const journal_head& head, epoch_t known) const;
  std::vector<node_name> alive() const;

  /// The mesh says that a node is gone.
  void lost(const node_name& node, std::int64_t now);
  /// A node that shuts down does not take up a session of its own any more: another may have it.
  void given_up(const session_id& session, const node_name& by, std::int64_t now);
  /// A node has claimed a session of this one.
  void taken(const session_id& session, const node_name& by, std::int64_t now);
  /// Forgets what is over.
  void tidy(std::int64_t now);

 private:
  /// What a node did with a session, and how long that is remembered.
  struct note {
    node_name node;
    std::int64_t until;
  };
  using notes = std::unordered_map<session_id, note>;
  static bool says(const notes& from, const journal_head& head, std::int64_t now);

  node_name self_;
  std::shared_ptr<const session_peers> peers_;
  limits limits_;
  std::int64_t settled_at_;
  std::set<node_name> lost_; ///< before it is settled
  notes given_up_;
  notes yielded_;
};

} // namespace godwit
