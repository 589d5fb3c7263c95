#pragma once

#include "actors/model_card.hpp"
#include "actors/node/node.hpp"
#include "kernels/sampling/settings.hpp"
#include "messages/catalogue.hpp"
#include "messages/error.hpp"
#include "messages/ids.hpp"
#include "services/api/node_json.hpp"
#include "services/gateway/generation_tries.hpp"
#include "services/http/exchange.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace caf {
class actor_system;
}

namespace godwit {

/// How long the gateway waits and how far it lets producers run ahead of a client.
struct gateway_options {
  /// For each answer of the directory, a session, the tokenizer, the router or the node.
  std::chrono::milliseconds request_timeout{15'000};
  /// For the move of a session's KV to the lowest tier: longer than the session itself waits.
  std::chrono::milliseconds suspend_timeout{70'000};
  /// A stream that sent nothing for so long sends a comment line. The API promises at most 15 s.
  std::chrono::milliseconds heartbeat{10'000};
  /// A completion that gets no token for so long, though its client takes them, ends with `deadline`.
  std::chrono::milliseconds stall_timeout{300'000};
  /// How a completion goes on when its worker is lost.
  try_limits tries;
  /// Tokens of one choice, or events of one stream, that may be under way to a client that does not read.
  std::uint32_t token_credit = 64;
  std::uint32_t event_credit = 64;
  /// How tokens are chosen where a request or a session does not say.
  sampling_settings sampling;
  /// What 503 and 529 tell the client to wait.
  std::chrono::seconds retry_after{1};
};

/// Knows all nodes of the mesh.
using node_list_actor = caf::typed_actor<
  // Every node that is known, in the order of their names.
  caf::replies_to<list_atom>::with<letter<schema::NodeList>>>;

/// All that the gateway stands on. The functions may be called on any thread, several at once.
struct gateway_config {
  directory_actor directory;
  router_actor router;
  tokenizer_actor tokenizer;
  node_actor node;
  model_card model;
  /// False on a node without the role gateway: health, metrics and what nodes tell of themselves is answered
  /// there too, all else refused. `directory`, `router` and `tokenizer` may be null then.
  bool serves = true;
  node_list_actor nodes = {}; ///< null: this node is alone
  /// The process of a node that is up, by its name, this one among them, also by no name; may be left out.
  std::function<std::optional<process_actor>(const std::string& node)> process = {};
  /// Roles that this node needs and leaves to others, as long as nobody has them; may be left out.
  std::function<std::vector<absent_role>()> absent = {};
  std::function<std::string()> metrics;     ///< Prometheus text
  std::function<request_id()> next_request; ///< unique in the mesh
  std::function<std::uint64_t()> random;    ///< seeds of requests without one, ids of answers
  std::function<std::int64_t()> now;        ///< seconds since 1970
  /// Told of failures whose words a client must not see; nothing if empty.
  std::function<void(std::string_view call, const error&)> report;
  /// Why sessions cannot be written at present; empty: they can. Asked for readiness; may be left out.
  std::function<std::string()> journal_trouble = {};
  gateway_options options;
};

/// The public API as a handler of HTTP requests.
class gateway : public http::handler {
 public:
  /// Takes no new work from now on: calls that need a model or a session are refused with 503, /readyz says
  /// so, and event streams end once their turn is over. Any thread may call.
  virtual void drain() = 0;
};

std::shared_ptr<gateway> make_gateway(caf::actor_system& system, gateway_config config);

} // namespace godwit
