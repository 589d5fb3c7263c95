#pragma once

#include "actors/directory/directory.hpp"
#include "actors/directory/live_sessions.hpp"
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
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace godwit::detail {

/// What a directory knows and does, called by its behaviour.
class directory_shell {
 public:
  using inner_actor = directory_actor::extend<caf::reacts_to<tick_atom>>;
  struct actor_state {
    static inline const char* name = "directory";
    std::unique_ptr<directory_shell> shell;
  };
  using self_pointer = inner_actor::stateful_pointer<actor_state>;

  using located = std::function<void(result<session_actor>)>;
  using informed = std::function<void(result<letter<schema::SessionInfo>>)>;
  using listed = std::function<void(result<letter<schema::SessionList>>)>;

  directory_shell(self_pointer self, directory_config config);
  /// Sessions do not outlive their directory, however it ends.
  ~directory_shell();
  directory_shell(const directory_shell&) = delete;
  directory_shell& operator=(const directory_shell&) = delete;

  result<letter<schema::SessionInfo>> create(schema::SessionSettings::Reader settings);
  void locate(const session_id& session, const std::string& tenant, located done);
  void list(schema::ListRequest::Reader request, listed done);
  void erase(const session_id& session, const std::string& tenant, informed done);

  void begin();
  void tick();
  void session_down(const caf::down_msg& down);
  /// Calls back with the number of sessions that still ran when the time was over.
  void drain(std::function<void(std::uint32_t)> done);
  /// Ends all sessions; their turns stay as they are, for the next start.
  void stop();
  letter<schema::ActorStatus> status() const;

 private:
  struct live_entry {
    session_actor handle;
    std::string tenant;
    bool leaving = false;                       ///< was asked to end, or is being erased
    std::vector<std::function<void()>> waiting; ///< calls until it has, or has not
  };
  struct page;
  struct draining;

  std::int64_t now() const { return config_->time->steady_ms(); }
  journal& records() const { return *config_->records; }

  result<journal_head> find_head(const session_id& session) const;
  result<session_actor> revive(const session_id& session, const std::string& tenant, std::int64_t used);
  live_entry& spawn(const session_id& session, const std::string& tenant, std::int64_t used);
  /// Its actor is gone, or goes.
  void forget(const session_id& session);
  /// It does not leave after all.
  void keep(const session_id& session);
  void close_then_erase(const session_id& session, informed done);
  void erased(
    const session_id& session, const result<letter<schema::SessionInfo>>& closed, const informed& done);

  /// Revives sessions whose turn runs; goes on with the next tick where it had to stop.
  void recover();
  void revive_fallen();
  void passivate();
  void sweep();

  self_pointer self_;
  directory_limits limits_;
  std::shared_ptr<const session_config> config_;
  live_sessions live_;
  std::unordered_map<session_id, live_entry> entries_;
  std::map<caf::actor_addr, session_id> by_address_;
  std::set<session_id> fallen_; ///< ended by an error: a running turn goes on with the next tick
  bool recovered_ = false;
  session_id recover_after_;
  std::size_t recovered_count_ = 0;
  std::string trouble_; ///< why recovery has not ended
  session_id sweep_after_;
  bool draining_ = false;
};

} // namespace godwit::detail
