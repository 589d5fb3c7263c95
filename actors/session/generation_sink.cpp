#include "actors/session/generation_sink.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_config.hpp>
#include <caf/actor_proxy.hpp>
#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/make_actor.hpp>
#include <caf/system_messages.hpp>

#include <utility>

namespace godwit {

namespace {

class sink final : public caf::actor_proxy {
 public:
  sink(caf::actor_config& config, caf::strong_actor_ptr target, std::function<void()> released)
    : caf::actor_proxy(config), target_(std::move(target)), released_(std::move(released)) {}
  ~sink() override { released_(); }

  const char* name() const override { return "generation_sink"; }
  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* host) override {
    // Meant for the sink, and not for the session.
    const auto& content = what->content();
    if (!content.match_elements<caf::exit_msg>() && !content.match_elements<caf::down_msg>())
      target_->get()->enqueue(std::move(what), host);
  }
  void kill_proxy(caf::execution_unit* host, caf::error reason) override { cleanup(std::move(reason), host); }

 private:
  caf::strong_actor_ptr target_;
  std::function<void()> released_;
};

} // namespace

generation_sink_actor make_generation_sink(
  caf::actor_system& system, caf::strong_actor_ptr target, std::function<void()> released) {
  caf::actor_config config;
  return caf::actor_cast<generation_sink_actor>(caf::make_actor<sink, caf::strong_actor_ptr>(
    system.next_actor_id(), system.node(), &system, config, std::move(target), std::move(released)));
}

void generation_sinks::add(const generation_sink_actor& sink) {
  std::erase_if(sinks_, [](const caf::weak_actor_ptr& one) { return one.lock() == nullptr; });
  sinks_.push_back(caf::actor_cast<caf::weak_actor_ptr>(caf::actor_cast<caf::strong_actor_ptr>(sink)));
}

void generation_sinks::end() {
  for (const auto& one : std::exchange(sinks_, {}))
    if (const auto there = one.lock())
      static_cast<caf::actor_proxy*>(there->get())->kill_proxy(nullptr, caf::exit_reason::user_shutdown);
}

} // namespace godwit
