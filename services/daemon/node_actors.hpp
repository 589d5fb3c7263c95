#pragma once

#include "actors/cache/cold_store.hpp"
#include "actors/engine/engine.hpp"
#include "actors/node/node.hpp"
#include "actors/session/journal.hpp"
#include "actors/session/time_source.hpp"
#include "actors/supervisor/part_handle.hpp"
#include "actors/supervisor/supervisor.hpp"
#include "messages/catalogue.hpp"
#include "messages/result.hpp"
#include "services/api/node_json.hpp"
#include "services/config/config.hpp"
#include "services/config/roles.hpp"
#include "services/daemon/gateway_switch.hpp"
#include "services/daemon/loaded_model.hpp"
#include "services/log/log.hpp"
#include "services/mesh/mesh.hpp"
#include "services/metrics/metrics.hpp"

#include <caf/actor_system.hpp>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace godwit {

/// What the actors of a node are made from.
struct node_ingredients {
  config settings;
  std::string incarnation; ///< of this process, for claims in the journal: never another one while it runs
  loaded_model model;
  std::shared_ptr<journal> records;
  std::shared_ptr<metrics> figures;
  std::shared_ptr<logger> out;
  std::shared_ptr<gateway_switch> front;
  std::function<std::string()> journal_trouble = {}; ///< see gateway_config
  std::shared_ptr<cold_store> cold = {};             ///< null: there is no tier on disk
  std::optional<identity_key> cache_key = {};        ///< of that store; without one a random key
  node_roles roles = {};                             ///< what is started; `records` and the model's weights
                                                     ///< are there if they need them
  std::optional<mesh_options> others = {};           ///< for what it leaves to others; nothing: it is alone
  std::string version = {};                          ///< of the software
  std::function<void()> leave = {};                  ///< asks the process to end in good order
  /// Told when a part cannot be kept running, and why: the process is to drain and to end. Any thread.
  std::function<void(const std::string&)> failed = {};
};

/// The actors of one node under their supervisor, as its roles want them: device (with cache, prefill and
/// decode), router, tokenizer, directory. Whatever of them ends is started again, the router with the device;
/// the others and the gateway reach them by handles that outlive that. One that cannot be kept running fails
/// the node. In a mesh they are offered to other nodes, and handles of theirs take the places of those that
/// are missing.
class node_actors : public std::enable_shared_from_this<node_actors> {
 public:
  /// Starts them, and the gateway in front.
  /// @returns the engine's error if there is no such page pool, the mesh's if it cannot be joined
  static result<std::shared_ptr<node_actors>> start(caf::actor_system& system, node_ingredients from);

  const node_behaviour& node() const { return node_; }
  const supervisor_actor& supervisor() const { return supervisor_; }
  /// Of the engine of now; null: there is none.
  std::shared_ptr<const engine_counters> counters() const;
  /// Of its prompts that others compute, or of others that it computes; null: it does neither.
  std::shared_ptr<const handover_counters> handover() const;
  /// Null: this node is alone.
  std::shared_ptr<mesh> others() const { return mesh_; }
  /// Workers of other nodes that are there, by the names of their nodes.
  std::vector<node_name> workers() const;

  /// In a mesh: tells the others that this node drains, and has its worker refuse what they still send. After
  /// the node was told to drain.
  void drain();
  /// Ends them all, and leaves the mesh for this cause. Before the actor system ends.
  void stop(link::end_cause cause);

 private:
  explicit node_actors(node_ingredients from);

  result<void> join_mesh(caf::actor_system& system);
  void take_worker(const remote_worker& worker);
  void lose_worker(const node_name& node);
  void send_join(const worker_desk_actor& desk, const remote_worker& worker) const;
  void take_prompt_node(const node_name& node, bool there);
  std::optional<prompt_desk_actor> desk_of(const std::string& node) const;
  bool is_up(const std::string& node) const;
  node_config about_this_node();
  void make_places(caf::actor_system& system);
  std::vector<supervised> children();
  engine_options options_of_engine() const;

  result<void> start_engine(caf::actor_system& system);
  common_actor start_device(caf::actor_system& system);
  common_actor start_router(caf::actor_system& system);
  common_actor start_tokenizer(caf::actor_system& system);
  common_actor start_directory(caf::actor_system& system);
  void start_gateway(caf::actor_system& system);

  std::vector<cache_tiers_actor> caches() const;
  std::vector<absent_role> absent() const;
  void refuse_sessions(const std::string& why);
  std::optional<process_actor> process_of(const std::string& node) const;
  template <class Handle>
  void offer(const std::string& name, const Handle& actor);

  node_ingredients from_;
  std::shared_ptr<const time_source> time_;
  std::int64_t started_at_ = 0; ///< seconds since 1970
  node_behaviour node_;
  supervisor_actor supervisor_;
  std::shared_ptr<mesh> mesh_;
  cache_tiers_actor survey_; ///< of all workers' caches; outlives each, with the pins on them
  common_actor sign_;        ///< of where sessions are kept, in a mesh

  // Set by the supervisor as it starts them.
  mutable std::mutex
    mutex_; ///< of the engine, the workers and the refusal: metrics look at it, the mesh brings them
  std::string refused_; ///< why this node must not have sessions
  bool failed_ = false; ///< a part cannot be kept running
  engine engine_;
  bool engine_is_new_ = false; ///< made, and not yet handed to the supervisor
  worker_desk_actor desk_;     ///< of the router here
  std::map<node_name, remote_worker> workers_;
  std::set<node_name> prompt_nodes_; ///< of others, that compute prompts
  std::set<std::string> started_;    ///< parts that were started, of the supervisor's thread

  // Where those who use a part find it, if this node has it.
  part_handle<router_actor> router_place_;
  part_handle<tokenizer_actor> tokenizer_place_;
  part_handle<directory_actor> directory_place_;
  // The same, or those of other nodes: these do not change.
  router_actor router_;
  tokenizer_actor tokenizer_;
  directory_actor directory_;
};

} // namespace godwit
