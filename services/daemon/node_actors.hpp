#pragma once

#include "actors/cache/cold_store.hpp"
#include "actors/engine/engine.hpp"
#include "actors/session/journal.hpp"
#include "actors/session/time_source.hpp"
#include "messages/catalogue.hpp"
#include "messages/result.hpp"
#include "services/config/config.hpp"
#include "services/daemon/gateway_switch.hpp"
#include "services/daemon/loaded_model.hpp"
#include "services/log/log.hpp"
#include "services/metrics/metrics.hpp"

#include <caf/actor_system.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace godwit {

/// What the actors of a node are made from.
struct node_ingredients {
  config settings;
  std::string incarnation;
  loaded_model model;
  std::shared_ptr<journal> records;
  std::shared_ptr<metrics> figures;
  std::shared_ptr<logger> out;
  std::shared_ptr<gateway_switch> front;
  std::function<std::string()> journal_trouble = {}; ///< see gateway_config
  std::shared_ptr<cold_store> cold = {};             ///< null: there is no tier on disk
  std::optional<identity_key> cache_key = {};        ///< of that store; without one a random key
};

/// The actors of one node under their supervisor: device (with cache, prefill and decode), router, tokenizer,
/// directory. Whatever of them ends is started again with all that depend on it, and the gateway is made anew
/// over them. One that cannot be kept running fails the node.
class node_actors {
 public:
  /// Starts them, and the gateway in front.
  /// @returns the engine's error if there is no such page pool
  static result<std::shared_ptr<node_actors>> start(caf::actor_system& system, node_ingredients from);

  const node_actor& node() const { return node_; }
  const supervisor_actor& supervisor() const { return supervisor_; }
  /// Of the engine of now.
  std::shared_ptr<const engine_counters> counters() const;

 private:
  explicit node_actors(node_ingredients from);

  result<void> start_engine(caf::actor_system& system);
  common_actor start_device(caf::actor_system& system);
  common_actor start_directory(caf::actor_system& system);
  void start_gateway(caf::actor_system& system);

  node_ingredients from_;
  std::shared_ptr<const time_source> time_;
  node_actor node_;
  supervisor_actor supervisor_;

  // Set by the supervisor as it starts them, in this order.
  mutable std::mutex mutex_; ///< of the engine: metrics look at it
  engine engine_;
  bool engine_is_new_ = false; ///< made, and not yet handed to the supervisor
  tokenizer_actor tokenizer_;
  directory_actor directory_;
};

} // namespace godwit
