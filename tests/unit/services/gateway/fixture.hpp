#pragma once

#include "messages/actor_error.hpp"
#include "messages/catalogue.hpp"
#include "services/gateway/gateway.hpp"
#include "tests/unit/services/api/words.hpp"
#include "tests/unit/services/gateway/fake_exchange.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace godwit::test {

/// Everything behind the gateway, as a test scripts and inspects it.
struct world {
  // What the mesh answers; an error takes the answer's place.
  std::optional<error> directory_error;
  std::optional<error> session_error;
  std::optional<error> tokenizer_error;
  std::optional<error> router_error;
  std::uint32_t prompt_tokens = 3;
  std::string node_state = "ready";
  std::string journal_trouble;
  bool silent_router = false; ///< never answers

  // What it was asked.
  struct generation {
    letter<schema::GenerateRequest> request;
    generation_sink_actor sink;
    std::uint32_t sent = 0; ///< tokens
  };
  std::vector<generation> generations;
  std::vector<letter<schema::CreditGrant>> token_credits;
  std::vector<letter<schema::CancelRequest>> cancels;
  std::vector<letter<schema::RenderRequest>> renders;
  std::vector<letter<schema::SessionSettings>> created;
  std::vector<letter<schema::LocateRequest>> located;
  std::vector<letter<schema::ListRequest>> listed;
  std::vector<letter<schema::LocateRequest>> erased;
  std::vector<letter<schema::PostMessage>> posted;
  struct subscription {
    letter<schema::SubscribeRequest> request;
    event_sink_actor sink;
  };
  std::vector<subscription> subscriptions;
  std::vector<letter<schema::EventCredit>> event_credits;
  std::vector<letter<schema::Unsubscribe>> unsubscribed;
  std::vector<letter<schema::CancelTurn>> cancelled_turns;
  std::vector<letter<schema::ForkRequest>> forks;
  unsigned suspensions = 0;
  unsigned leaves = 0;                ///< times that the node's process was asked to end
  std::vector<absent_role> absent;    ///< roles that nobody has
  letter<schema::NodeList> all_nodes; ///< as the mesh knows them
  std::vector<letter<schema::TraceRequest>> traces;
  std::vector<std::uint32_t> pins; ///< seconds
  unsigned unpins = 0;
  std::vector<std::pair<std::string, error>> reports;
  std::vector<std::string> seen_traces; ///< for which sessions were located and told of, and tokens asked for
  session_actor session;                ///< the only one
};

struct test_config : caf::actor_system_config {
  test_config() { set("scheduler.policy", caf::atom("testing")); }
};

/// A gateway on CAF's deterministic scheduler, in front of scripted actors.
class fixture {
 public:
  /// @param serves whether the node has the role gateway
  /// @param in_mesh whether it is one of many
  explicit fixture(bool serves = true, bool in_mesh = false);
  ~fixture();

  /// Sends a request and runs until nothing moves.
  std::shared_ptr<client_view> ask(const std::string& method, const std::string& path,
    const std::string& body = {}, http::headers fields = {});
  /// The same from a client that does not read by itself.
  std::shared_ptr<client_view> ask_slowly(const std::string& method, const std::string& path,
    const std::string& body = {}, http::headers fields = {});

  void run();
  /// Lets time pass, with its timers.
  void pass(std::chrono::milliseconds time);

  /// The engine sends the next tokens of a generation.
  void tokens(std::size_t generation, batch_parts parts);
  /// A generation's worker dies, and its router tells.
  void lose(std::size_t generation);
  /// The session sends events `{id, type, data}`.
  void events(std::size_t subscription, const std::vector<std::array<std::string, 3>>& list,
    bool ended = false, std::optional<error> failure = {});
  /// The session's actor dies, and another takes its place.
  void replace_session();

  // Defined here, so that they are there before what test files make of them.
  static inline const std::string session_id = "ses_0123456789abcdef0123456789abcdef";
  static inline const std::string chat_body =
    R"({"model":"m","messages":[{"role":"user","content":"Hi"}],"seed":7,"stream":true})";

 protected:
  test_config config_;
  caf::actor_system system_;
  caf::scheduler::test_coordinator& scheduler_;
  std::shared_ptr<world> world_;
  std::shared_ptr<gateway> gateway_;

 private:
  std::shared_ptr<client_view> send(std::shared_ptr<client_view> view, const std::string& method,
    const std::string& path, const std::string& body, http::headers fields);

  directory_actor directory_;
  router_actor router_;
  tokenizer_actor tokenizer_;
  node_actor node_;
  process_actor process_;
  node_list_actor nodes_;
};

} // namespace godwit::test
