#pragma once

#include "actors/trace/letter_trace.hpp"
#include "actors/trace/trace_scope.hpp"
#include "services/link/actor_codec.hpp"
#include "services/link/mesh_link.hpp"

#include <caf/actor_config.hpp>
#include <caf/actor_proxy.hpp>
#include <caf/mailbox_element.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace godwit::link {

class remote_actor;

/// What handles of others need of their exchange. Called from any thread.
class remote_home {
 public:
  virtual ~remote_home() = default;
  /// Sends a message to another node; the answer of a request goes to its sender.
  virtual void forward(remote_actor& from, const signature_codec& signature, caf::mailbox_element& what) = 0;
  /// A letter without an answer went to an actor whose node is gone.
  virtual void letter_lost() = 0;
  /// A local actor has answered a request of another node.
  virtual void answered(std::uint64_t request, const caf::type_erased_tuple& content) = 0;
  /// Nobody holds the handle any more.
  virtual void dropped(const actor_address& where, std::uint64_t references) = 0;
};

/// The handle of an actor on another node. Has no mailbox and no thread: messages become frames where they
/// are sent.
class remote_actor final : public caf::actor_proxy, public letter_watch {
 public:
  remote_actor(caf::actor_config& config, std::shared_ptr<remote_home> home, actor_address where,
    const interface_codec& codec)
    : caf::actor_proxy(config), home_(std::move(home)), where_(std::move(where)), codec_(codec) {}
  ~remote_actor() override {
    // A dead one's node has let go of it already; in a new conversation its number may be another actor's.
    if (!dead_)
      home_->dropped(where_, references);
  }

  const char* name() const override { return "remote"; }
  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* host) override;
  void kill_proxy(caf::execution_unit* host, caf::error reason) override {
    dead_ = true;
    cleanup(std::move(reason), host);
  }

  const actor_address& where() const { return where_; }

  /// How often its node has passed it here; guarded by the exchange.
  std::uint64_t references = 0;

 protected:
  const caf::actor_control_block* watched() const override { return ctrl(); }
  std::string watched_name() const override;

 private:
  std::shared_ptr<remote_home> home_;
  actor_address where_;
  const interface_codec& codec_;
  std::atomic<bool> dead_{false};
};

/// Whoever asks from another node, for one request: takes the answer, on whatever thread it is given. Whoever
/// monitors it is told when nobody waits for the answer any more, and for which cause; behind an answer
/// nothing is told.
class remote_asker final : public caf::actor_proxy, public trace_carrier {
 public:
  remote_asker(caf::actor_config& config, std::weak_ptr<remote_home> home, std::uint64_t request,
    const trace_context& trace)
    : caf::actor_proxy(config), trace_carrier(trace), home_(std::move(home)), request_(request) {}

  const char* name() const override { return "asker"; }
  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* host) override;
  void kill_proxy(caf::execution_unit* host, caf::error reason) override { cleanup(std::move(reason), host); }

 private:
  std::weak_ptr<remote_home> home_; ///< which owns this
  std::uint64_t request_;
};

} // namespace godwit::link
