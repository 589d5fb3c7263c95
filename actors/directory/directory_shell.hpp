#pragma once

#include "actors/directory/directory.hpp"
#include "actors/directory/live_sessions.hpp"
#include "actors/directory/ownership.hpp"
#include "actors/session/session.hpp"
#include "messages/catalogue.hpp"
#include "messages/ids.hpp"
#include "messages/result.hpp"

#include <caf/actor_addr.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/system_messages.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace godwit::detail {

/// The scan of the journal goes on.
using scan_atom = caf::atom_constant<caf::atom("scan")>;
/// Another node is gone.
using lost_atom = caf::atom_constant<caf::atom("lost")>;

/// What a directory knows and does, called by its behaviour.
class directory_shell {
 public:
  using inner_actor = directory_actor::extend<caf::reacts_to<tick_atom>, caf::reacts_to<scan_atom>,
    caf::reacts_to<lost_atom, std::string>>;
  struct actor_state {
    static inline const char* name = "directory";
    std::unique_ptr<directory_shell> shell;
  };
  using self_pointer = inner_actor::stateful_pointer<actor_state>;

  /// Which session is asked for, for whom, and how many nodes have passed the question on.
  struct question {
    session_id session;
    std::string tenant;
    unsigned hops = 0;
  };
  static question question_of(schema::LocateRequest::Reader mail);

  /// Nodes that pass a question on; owners that change faster than it travels are not run after.
  static constexpr unsigned most_hops = 3;

  using located = std::function<void(result<session_actor>)>;
  using informed = std::function<void(result<letter<schema::SessionInfo>>)>;
  using listed = std::function<void(result<letter<schema::SessionList>>)>;

  directory_shell(self_pointer self, directory_config config);
  /// Sessions do not outlive their directory, however it ends.
  ~directory_shell();
  directory_shell(const directory_shell&) = delete;
  directory_shell& operator=(const directory_shell&) = delete;

  result<letter<schema::SessionInfo>> create(schema::SessionSettings::Reader settings);
  void locate(const question& who, const located& done);
  void list(schema::ListRequest::Reader request, listed done);
  void erase(const question& who, const informed& done);

  void begin();
  void tick();
  /// Looks at the next page of the journal for turns to go on with.
  void scan_page();
  void node_lost(const node_name& node);
  void session_down(const caf::down_msg& down);
  /// Calls back with the number of sessions that still ran when the time was over.
  void drain(std::function<void(std::uint32_t)> done);
  /// Ends all sessions; their turns stay as they are, for the next start.
  void stop();
  /// Answers calls that nobody will answer any more.
  void refuse_waiting();
  letter<schema::ActorStatus> status() const;

 private:
  struct live_entry {
    session_actor handle;
    std::string tenant;
    epoch_t epoch = 0;                          ///< of the journal when the actor was made
    std::int64_t checked = 0;                   ///< when it was this node's for the last time
    bool busy = false;                          ///< claims its journal, was asked to end, or is being erased
    std::vector<std::function<void()>> waiting; ///< calls until it is not
  };
  /// Where a session is: an actor here, or another directory to ask.
  struct whereabouts {
    session_actor here;
    directory_actor there;
    node_name owner; ///< of that directory
    unsigned hops = 0;
  };
  using sought = std::function<void(result<whereabouts>)>;
  /// A call that waits until it is known which nodes there are.
  struct parked_call {
    question who;
    sought done;
  };
  struct page;
  struct draining;

  std::int64_t now() const { return config_->time->steady_ms(); }
  journal& records() const { return *config_->records; }

  // Sessions with an actor here: directory_shell.cpp.
  result<journal_head> find_head(const session_id& session) const;
  result<session_actor> revive(const journal_head& head, std::int64_t used);
  live_entry& spawn(const journal_head& head, std::int64_t used, bool claim);
  void claimed(const session_id& session, const caf::actor_addr& actor, bool success);
  /// Whether a session's actor still is this one.
  bool lives(const session_id& session, const caf::actor_addr& actor) const;
  /// Its actor is gone, or goes.
  void forget(const session_id& session);
  /// It does not leave after all.
  void keep(const session_id& session);
  void close_then_erase(const question& who, const informed& done);
  void erased(const question& who, const caf::actor_addr& actor,
    const result<letter<schema::SessionInfo>>& closed, const informed& done);

  // Sessions of other nodes: directory_owners.cpp.
  void seek(const question& who, const sought& done);
  void wait(live_entry& entry, const question& who, const sought& done);
  void take(const journal_head& head, const question& who, const sought& done);
  void park(const question& who, const sought& done);
  void unpark();
  void unpark_if_news();
  /// Whether another node has a session that is live here: then its actor is ended.
  bool overtaken(const session_id& session);
  void verify();
  template <class T, class... Words>
  void pass_on(const question& who, const whereabouts& found, const std::function<void(result<T>)>& done,
    void (directory_shell::*again)(const question&, const std::function<void(result<T>)>&), Words... words);

  // Lists: directory_list.cpp.
  void show(const journal_head& head, const informed& done);
  void ask_info(const session_actor& session, const informed& done);
  void ask_owner(const journal_head& head, const directory_actor& owner, const informed& done);
  void look(const journal_head& head, const informed& done);

  // Upkeep: directory_upkeep.cpp.
  /// Revives a session whose turn is this node's to go on with. @returns false if there is no room
  bool resume(const journal_head& head, const std::vector<node_name>& alive);
  void begin_scan();
  void revive_fallen();
  void passivate();
  void sweep();

  self_pointer self_;
  directory_limits limits_;
  std::shared_ptr<const session_config> config_;
  std::shared_ptr<session_peers> peers_;
  live_sessions live_;
  ownership owners_;
  std::map<session_id, live_entry> entries_;
  std::map<caf::actor_addr, session_id> by_address_;
  std::set<session_id> fallen_; ///< ended by an error: a running turn goes on with the next tick

  // The scan of the journal for running turns.
  bool scanning_ = false;
  bool scan_again_ = false; ///< something happened behind its back
  session_id scan_after_;
  std::optional<std::int64_t> rescan_at_;
  bool recovered_ = false; ///< the first scan is done
  std::string trouble_;    ///< why the scan cannot go on now

  std::vector<parked_call> parked_;
  std::vector<node_name> known_; ///< the nodes there were when those were looked at
  std::size_t passing_ = 0;      ///< calls that wait for other directories
  std::size_t viewers_ = 0;      ///< actors that only show a session
  session_id verify_after_;
  std::size_t doubtful_ = 0; ///< live sessions to be verified soon
  std::int64_t ticked_at_ = 0;
  session_id sweep_after_;
  bool draining_ = false;

  // Counted since the start.
  std::size_t recovered_count_ = 0;
  std::size_t taken_count_ = 0;     ///< claims of other nodes' sessions
  std::size_t overtaken_count_ = 0; ///< sessions that other nodes claimed
  std::size_t passed_count_ = 0;
};

} // namespace godwit::detail
