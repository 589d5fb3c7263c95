#pragma once

#include "actors/model_card.hpp"
#include "actors/session/journal.hpp"
#include "actors/session/journal_clerks.hpp"
#include "actors/session/session_limits.hpp"
#include "actors/session/time_source.hpp"
#include "messages/catalogue.hpp"
#include "messages/error.hpp"
#include "messages/ids.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace caf {
class actor_system;
}

namespace godwit {

/// All that a session stands on; one for all sessions of a node. The functions may be called on any thread.
struct session_config {
  router_actor router;
  tokenizer_actor tokenizer;
  cache_tiers_actor cache; ///< of the worker; null: what it has of a session is not told
  std::shared_ptr<journal> records;
  /// Wait for `records` in place of sessions; null: sessions wait themselves, as tests do.
  std::shared_ptr<journal_clerks> clerks = nullptr;
  model_card model;
  node_name node;
  std::string incarnation; ///< of this start of the node: an owner is a node and an incarnation
  std::shared_ptr<const time_source> time;
  std::function<request_id()> next_request; ///< unique for the life of the process
  std::function<std::uint64_t()> random;    ///< for the ids of new sessions
  /// Told of failures that no client sees in full; nothing if empty.
  std::function<void(const session_id&, const error&)> report;
  session_limits limits;
};

/// How an actor begins with a session that more than one node may want.
struct session_start {
  /// It is this node's to have only while it is in this epoch; once another has claimed it, the actor ends
  /// with `stale_epoch`. Empty: whatever epoch it is in, which is right where there is one node.
  std::optional<epoch_t> epoch = std::nullopt;
  /// Claims it at once. A request for its status is answered when the journal has decided, with an error if
  /// against or not at all; then the actor ends.
  bool claim = false;
  /// Only shows what the journal has: claims nothing, and runs nothing.
  bool look_only = false;
};

/// Revives a session from its journal. A turn that was running goes on at once: the session is claimed with
/// the next epoch, and generation continues behind the last committed token. Otherwise it is claimed when the
/// first record has to be written. If the journal cannot be replayed, every request is answered with that
/// error; while it is being replayed, requests wait, in order and within bounds. An actor that is sent an
/// exit message with `stale_epoch` or `not_found` as its reason tells its streams so: the session is to be
/// looked for elsewhere.
session_actor spawn_session(caf::actor_system& system, session_id session,
  std::shared_ptr<const session_config> config, const session_start& start = {});

/// A new id: "ses_" and 32 hexadecimal digits.
session_id new_session_id(const std::function<std::uint64_t()>& random);

/// True for the form of new_session_id().
bool is_session_id(std::string_view text);

} // namespace godwit
