#pragma once

#include "tests/unit/actors/engine/test_engine.hpp"

#include <condition_variable>
#include <mutex>

namespace godwit::test {

struct threaded_config : caf::actor_system_config {
  threaded_config() { configure_scheduler(*this); }
};

/// What consumers got, and a way to wait for it.
class mailbox {
 public:
  void put(schema::TokenBatch::Reader batch) {
    const std::lock_guard lock(mutex_);
    take(box_, batch);
    ended_ += batch.getFinish() == schema::FinishReason::NONE ? 0 : 1;
    changed_.notify_all();
  }

  /// @returns false if it takes too long
  bool wait_for_ends(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(300), [&] { return ended_ >= count; });
  }

  received of(request_id id) {
    const std::lock_guard lock(mutex_);
    return box_[id];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  inbox box_;
  std::size_t ended_ = 0;
};

/// Takes tokens, and grants as many as it took.
inline generation_sink_actor::behavior_type consumer(
  generation_sink_actor::pointer self, std::shared_ptr<mailbox> box, const router_actor& router) {
  return {[self, box = std::move(box), router](const letter<schema::TokenBatch>& mail) {
    box->put(mail.read());
    self->send(router, letter<schema::CreditGrant>::make([&](schema::CreditGrant::Builder b) {
      b.setRequest(mail.read().getRequest());
      b.setTokens(mail.read().getTokens().size());
    }));
  }};
}

/// An engine on threads, as it runs in a node.
struct threaded_engine {
  threaded_engine(std::unique_ptr<model> model, const model_card& card, const engine_options& options)
    : system(config) {
    auto made = spawn_engine(system, std::move(model), card, options);
    GODWIT_CHECK(made.has_value());
    all = *made;
    sink = system.spawn(consumer, box, all.router);
  }

  ~threaded_engine() {
    caf::anon_send(all.router, stop_atom::value);
    caf::anon_send_exit(sink, caf::exit_reason::user_shutdown);
  }

  void post(const ask& what) { caf::anon_send(all.router, what.mail(), sink); }

  threaded_config config;
  caf::actor_system system;
  std::shared_ptr<mailbox> box = std::make_shared<mailbox>();
  engine all;
  generation_sink_actor sink;
};

} // namespace godwit::test
