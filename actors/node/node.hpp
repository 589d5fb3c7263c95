#pragma once

#include "messages/catalogue.hpp"
#include "messages/ids.hpp"
#include "messages/letter.hpp"
#include "messages/schemas/trace.capnp.h"

#include <caf/atom.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace caf {
class actor_system;
}

namespace godwit {

/// Ends an actor's process in good order.
using leave_atom = caf::atom_constant<caf::atom("leave")>;

/// The process around a node's actors, as other nodes reach it.
using process_actor = caf::typed_actor<
  // Takes no new work, lets what runs end, and then ends, as after SIGTERM. Answers at once.
  caf::replies_to<leave_atom>::with<letter<schema::ActorStatus>>,
  // Watches the letters of one of its parts, or of a session that it holds, and answers when there were so
  // many or so much time has passed. @returns `not_found`, `conflict` while another trace of it runs,
  // `unsupported` for a part that cannot be traced
  caf::replies_to<letter<schema::TraceRequest>>::with<letter<schema::Trace>>>;

/// A node with its process.
using node_behaviour = node_actor::extend_with<process_actor>;

/// The part that knows the sessions: a directory_actor.
inline constexpr std::string_view directory_part = "directory";

/// Most letters, and the most time, of one trace; most traces of a node at a time.
inline constexpr std::uint32_t most_traced_letters = 1'000;
inline constexpr std::chrono::milliseconds longest_trace{60'000};
inline constexpr std::size_t most_traces = 8;

struct node_config {
  node_name name;
  std::string incarnation;                           ///< of this process, where nothing says another one:
  std::function<std::string()> incarnation_now = {}; ///< which may rise while it runs; any thread
  std::vector<std::string> roles;
  std::string model;
  std::string fingerprint;     ///< of that model as it is served here
  std::string version;         ///< of the software
  std::uint32_t capacity = 0;  ///< requests that its worker takes, running and waiting; 0: it is none
  std::int64_t started_at = 0; ///< seconds since 1970
  std::function<void()> leave; ///< asks the process to end in good order; empty: it cannot be asked
  /// Told when one of its parts cannot be kept running, and why. Any thread; may be left out.
  std::function<void(const std::string&)> failed = {};
  /// For a member's status; one that does not answer in time is shown as such and the node is not ready.
  std::chrono::milliseconds status_timeout{2'000};
  /// For a member to drain; more than any member takes for itself.
  std::chrono::milliseconds drain_timeout{60'000};
};

/// Starts the actor that stands for this process. Its members come by `join`, those that others depend on
/// first. Its status is `ready` when all members are; the reason names those that are not. When one cannot be
/// kept running it is `failed`, until it drains: what still runs is to end in good order.
node_behaviour spawn_node(caf::actor_system& system, node_config config);

} // namespace godwit
