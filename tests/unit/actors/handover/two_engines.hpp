#pragma once

#include "actors/handover/lease_book.hpp"
#include "tests/unit/actors/engine/test_engine.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace godwit::test {

/// What stands between a worker and the desk of another node, and spoils what a test wants spoiled.
struct desk_script {
  bool there = true;           ///< the node is known
  bool hangs_on_order = false; ///< orders are taken and never answered
  std::optional<errc> refusal; ///< of orders
  int fetches_left = -1;       ///< before all fails as if the node were lost; negative: never
  bool hangs = false;          ///< in place of that: there is no answer
  int damage_at = -1;          ///< the block of a prompt of which a bit is wrong
  std::uint32_t fewer = 0;     ///< blocks that are missing at the end of each answer
  unsigned orders = 0;
  unsigned fetches = 0;
  unsigned releases = 0;
};

/// A desk that passes on to another one what the script lets through.
inline prompt_desk_actor spawn_between(
  caf::actor_system& system, const prompt_desk_actor& real, const std::shared_ptr<desk_script>& script) {
  return system.spawn([=](prompt_desk_actor::pointer self) -> prompt_desk_actor::behavior_type {
    const error lost{errc::peer_lost, "the node is lost", {}, {}};
    return {
      [=](const letter<schema::PromptOrder>& mail,
        const common_actor& client) -> caf::result<letter<schema::PromptReady>> {
        ++script->orders;
        if (script->refusal)
          return to_caf_error({*script->refusal, "not now", {}, {}});
        auto promise = self->make_response_promise<letter<schema::PromptReady>>();
        if (script->hangs_on_order)
          return promise;
        self->request(real, std::chrono::seconds(1'000), mail, client)
          .then([promise](const letter<schema::PromptReady>& said) mutable { promise.deliver(said); },
            [promise](const caf::error& why) mutable { promise.deliver(why); });
        return promise;
      },
      [=](const letter<schema::PromptFetch>& mail) -> caf::result<letter<schema::PromptBlocks>> {
        const bool renews = mail.read().getCount() == 0;
        script->fetches += renews ? 0 : 1;
        auto promise = self->make_response_promise<letter<schema::PromptBlocks>>();
        if (script->fetches_left == 0) {
          if (!script->hangs)
            promise.deliver(to_caf_error(lost));
          return promise;
        }
        script->fetches_left -= script->fetches_left > 0 && !renews ? 1 : 0;
        self->request(real, std::chrono::seconds(1'000), mail)
          .then(
            [=](const letter<schema::PromptBlocks>& said) mutable {
              const auto first = static_cast<int>(said.read().getFirst());
              auto pages = said.attachments();
              const auto bad = script->damage_at - first;
              if (script->damage_at >= 0 && bad >= 0 && bad < static_cast<int>(pages.size())) {
                auto copy = *pages[static_cast<std::size_t>(bad)];
                copy[copy.size() / 2] ^= std::byte{4};
                pages[static_cast<std::size_t>(bad)] = std::make_shared<const std::vector<std::byte>>(copy);
              }
              pages.resize(pages.size() - std::min<std::size_t>(script->fewer, pages.size()));
              promise.deliver(letter<schema::PromptBlocks>::make(
                [&](schema::PromptBlocks::Builder b) {
                  b.setTransfer(said.read().getTransfer());
                  b.setFirst(said.read().getFirst());
                  b.setSeals(said.read().getSeals());
                },
                pages));
            },
            [promise](const caf::error& why) mutable { promise.deliver(why); });
        return promise;
      },
      [=](const letter<schema::PromptRelease>& mail) {
        ++script->releases;
        self->send(real, mail);
      },
      [](status_atom) { return letter<schema::ActorStatus>(); },
      [](drain_atom) { return letter<schema::Drained>(); },
      [self](stop_atom) { self->quit(); },
    };
  });
}

/// Two workers on CAF's test scheduler: one computes prompts, the other has them computed. Nothing runs
/// unless a test says so.
class two_engines {
 public:
  static constexpr std::uint32_t min_tokens = 64;

  explicit two_engines(std::uint32_t kv_tokens = 1024)
    : system(config), scheduler(dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler())) {
    prompts = spawn({}, 1024, prompt_log, true);
    between = spawn_between(system, prompts.desk, script);
    handover_options fetch;
    fetch.find = [this](const std::string& name) -> std::optional<prompt_desk_actor> {
      asked.push_back(name);
      return script->there ? std::optional(between) : std::nullopt;
    };
    streams = spawn(fetch, kv_tokens, stream_log, false);
    auto options = engine_options();
    options.handover.limits.min_tokens = min_tokens;
    options.worker = "streams";
    router = spawn_router(system, "fake", {as_worker(streams, options)}, routing_of(options));
    caf::anon_send(router, prompt_source("prompts", true));
    sink = spawn_sink();
    settle();
  }

  ~two_engines() {
    caf::anon_send(router, stop_atom::value);
    caf::anon_send(prompts.prefill, stop_atom::value);
    caf::anon_send(between, stop_atom::value);
    caf::anon_send_exit(sink, caf::exit_reason::user_shutdown);
    prompts = streams = engine();
    router = nullptr;
    between = nullptr;
    sink = nullptr;
    settle();
  }
  two_engines(const two_engines&) = delete;
  two_engines& operator=(const two_engines&) = delete;

  void settle() {
    while (scheduler.has_job())
      scheduler.run_once();
  }
  void post(const ask& what) { caf::anon_send(router, what.mail(), sink); }
  void cancel(request_id request) {
    caf::anon_send(router, letter<schema::CancelRequest>::make(
                             [&](schema::CancelRequest::Builder b) { b.initRequests(1).set(0, request); }));
  }
  void pass(std::chrono::milliseconds time) {
    scheduler.advance_time(time);
    settle();
  }

  /// Everything in the cache goes. @returns whether that was all: no block is held by anybody else
  bool all_free(const engine& which) {
    bool out = false;
    caf::scoped_actor self{system};
    auto handle = self->request(which.cache, std::chrono::seconds(5),
      letter<schema::CacheEvict>::make([&](schema::CacheEvict::Builder b) { b.setBlocks(which.kv_blocks); }));
    settle();
    handle.receive(
      [&](const letter<schema::CacheEvicted>&) { out = which.counters->free_blocks == which.kv_blocks; },
      [](const caf::error&) {});
    return out;
  }
  /// Nothing is left of any handover, on either side.
  bool idle() const {
    return prompts.handover->open == 0 && prompts.handover->kept_blocks == 0 && streams.handover->waiting == 0
           && prompts.counters->sequences == 0 && streams.counters->sequences == 0;
  }

  deterministic_config config;
  caf::actor_system system;
  caf::scheduler::test_coordinator& scheduler;
  std::shared_ptr<desk_script> script = std::make_shared<desk_script>();
  std::shared_ptr<fake_model::log> prompt_log = std::make_shared<fake_model::log>();
  std::shared_ptr<fake_model::log> stream_log = std::make_shared<fake_model::log>();
  std::vector<std::string> asked; ///< nodes that were looked for
  engine prompts;                 ///< computes prompts
  engine streams;                 ///< has them computed
  prompt_desk_actor between;
  router_behaviour router;
  generation_sink_actor sink;
  inbox box;

 private:
  engine spawn(handover_options handover, std::uint32_t kv_tokens,
    const std::shared_ptr<fake_model::log>& log, bool desk) {
    engine_options options;
    options.detached = false;
    options.kv_tokens = kv_tokens;
    options.worker = desk ? "prompts" : "streams";
    options.handover = std::move(handover);
    options.handover.desk = desk;
    options.handover.limits.min_tokens = min_tokens;
    options.handover.limits.request_bytes = 2 * fake_model::small_shape().kv.block_bytes();
    model_card card;
    card.id = "fake";
    card.context = 512;
    card.text = std::make_shared<fake_text>();
    auto made =
      spawn_worker(system, std::make_unique<fake_model>(fake_model::small_shape(), log), card, options);
    GODWIT_CHECK(made.has_value());
    return *made;
  }

  generation_sink_actor spawn_sink() {
    return system.spawn([this](generation_sink_actor::pointer) -> generation_sink_actor::behavior_type {
      return {[this](const letter<schema::TokenBatch>& mail) { take(box, mail.read()); }};
    });
  }
};

} // namespace godwit::test
