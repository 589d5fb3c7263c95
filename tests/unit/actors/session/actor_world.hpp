#pragma once

#include "actors/session/memory_journal.hpp"
#include "actors/session/session.hpp"
#include "actors/session/session_records.hpp"
#include "actors/trace/spawn_traced.hpp"
#include "messages/actor_error.hpp"
#include "tests/support/toy_generation.hpp"
#include "tests/support/toy_tokenizer.hpp"
#include "tests/unit/actors/session/fake_time.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <catch2/catch.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace godwit {

/// Actors on a scheduler that runs when the test says so, around a memory journal; tokenizer and worker are
/// toys. Time passes for the actors' clock and ours together.
class actor_world {
 public:
  struct generation : toy_generation {
    generation_sink_actor sink;
  };
  /// What a subscriber got.
  struct inbox {
    std::vector<std::string> ids;
    std::vector<std::string> types;
    std::vector<std::string> data;
    bool ended = false;
    int error = 0;
  };
  template <class T>
  using reply = std::optional<result<T>>;

  actor_world()
    : system(settings_), scheduler(dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler())) {
    config.records = log;
    config.model = {"toy", "toy-1", 4'000, 0, text};
    config.node = node_name("node");
    config.incarnation = "start-1";
    config.time = time;
    config.next_request = [this] { return ++requests; };
    config.random = [this] { return ++randoms * 0x9e3779b97f4a7c15U; };
    config.report = [this](const session_id&, const error& what) { reports.push_back(what.code); };
    config.tokenizer = system.spawn(toy_tokenizer, text);
    config.router = spawn_traced(system, [this](router_actor::pointer self) { return router(self); });
  }
  virtual ~actor_world() {
    for (const auto& handle : caches_)
      caf::anon_send_exit(handle, caf::exit_reason::user_shutdown);
    for (const auto& handle : stops_)
      caf::anon_send(handle, stop_atom::value);
    caf::anon_send(config.tokenizer, stop_atom::value);
    caf::anon_send(config.router, stop_atom::value);
    log->resume();
    run();
  }

  /// Opens a journal as a directory does.
  session_id open(std::uint64_t seed = 1, std::uint32_t max_tokens = 12, std::uint64_t ttl_s = 0) {
    const auto wanted = wanted_session("t", seed, max_tokens, ttl_s);
    const session_owner owner{config.node, config.incarnation, config.model.fingerprint};
    const auto id = new_session_id(config.random);
    REQUIRE(log->open(id, tenant_id("t"), config.node,
      {opened_record(wanted.read(), "toy", "toy-1", time->wall), claimed_record(owner, 1, time->wall)},
      false));
    return id;
  }
  static letter<schema::SessionSettings> wanted_session(const std::string& tenant, std::uint64_t seed = 1,
    std::uint32_t max_tokens = 12, std::uint64_t ttl_s = 0) {
    return letter<schema::SessionSettings>::make([&](schema::SessionSettings::Builder b) {
      b.setTenant(tenant);
      b.initSampling().setSeed(seed);
      b.setMaxTokens(max_tokens);
      b.setTtlSeconds(ttl_s);
    });
  }
  session_actor spawn(const session_id& id) {
    auto handle = spawn_session(system, id, std::make_shared<const session_config>(config));
    stop_at_end(handle);
    return handle;
  }
  void stop_at_end(const common_actor& handle) { stops_.push_back(handle); }
  /// A cache that answers as told.
  template <class Answer>
  cache_tiers_actor cache(Answer answer) {
    const auto ids = [](capnp::List<token_id>::Reader list) {
      std::vector<token_id> out;
      for (const auto id : list)
        out.push_back(id);
      return out;
    };
    auto made = system.spawn([=, this](cache_tiers_actor::pointer) -> cache_tiers_actor::behavior_type {
      return {
        [=](const letter<schema::CacheProbe>& mail) { return answer(ids(mail.read().getTokens()), false); },
        [=](const letter<schema::CacheSuspend>& mail) { return answer(ids(mail.read().getTokens()), true); },
        [=, this](const letter<schema::CachePin>& mail) -> caf::result<letter<schema::CachePinned>> {
          if (pin_refusal)
            return to_caf_error(*pin_refusal);
          pins.push_back(
            {mail.read().getTenant().cStr(), ids(mail.read().getTokens()), mail.read().getSeconds()});
          return letter<schema::CachePinned>::make([&](schema::CachePinned::Builder b) {
            b.setPin(pins.size());
            b.setBlocks(2);
          });
        },
        [=, this](const letter<schema::CacheUnpin>& mail) {
          unpinned.emplace_back(mail.read().getTenant().cStr(), mail.read().getPin());
        },
      };
    });
    caches_.push_back(made);
    return made;
  }

  virtual void run() { scheduler.run(); }
  void pass(std::int64_t milliseconds) {
    time->pass(milliseconds);
    scheduler.advance_time(std::chrono::milliseconds(milliseconds));
    run();
  }
  /// Lets the worker go on until nothing more happens.
  void settle() {
    run();
    while (work(5) > 0)
      run();
  }
  std::size_t work(std::size_t most) {
    for (auto& [request, one] : generations)
      if (const auto step = one.go_on(most)) {
        caf::anon_send(one.sink, toy_batch(request, *step));
        run();
        return step->tokens.size();
      }
    return 0;
  }

  /// Asks, runs, and takes the answer if there is one.
  template <class T, class Handle, class... Args>
  std::shared_ptr<reply<T>> ask(const Handle& handle, Args... args) {
    auto answer = std::make_shared<reply<T>>();
    system.spawn([=](caf::event_based_actor* self) {
      self->request(handle, std::chrono::seconds(100), args...)
        .then([answer](const T& value) { *answer = result<T>(value); },
          [answer](
            const caf::error& why) { *answer = result<T>(tl::unexpected<error>(from_caf_error(why))); });
    });
    run();
    return answer;
  }
  std::shared_ptr<reply<letter<schema::MessageAccepted>>> post(const session_actor& session,
    const std::string& content, const std::string& key = {}, bool cancel = false) {
    return ask<letter<schema::MessageAccepted>>(
      session, letter<schema::PostMessage>::make([&](schema::PostMessage::Builder b) {
        b.setContent(content);
        b.setIdempotencyKey(key);
        b.setCancelOnDisconnect(cancel);
      }));
  }
  letter<schema::SessionInfo> info(const session_actor& session) {
    const auto answer = ask<letter<schema::SessionInfo>>(session, info_atom::value);
    REQUIRE(answer->has_value());
    REQUIRE(**answer);
    return ***answer;
  }
  /// Opens a stream; its events come into `inboxes`. @returns its number
  std::uint64_t subscribe(const session_actor& session, std::uint32_t credit, turn_number only = 0) {
    auto sink = system.spawn([this](event_sink_actor::pointer) { return event_sink(); });
    const auto answer = ask<letter<schema::Subscribed>>(session,
      letter<schema::SubscribeRequest>::make([&](schema::SubscribeRequest::Builder b) {
        b.setCredit(credit);
        b.setOnlyTurn(only);
      }),
      sink);
    REQUIRE(answer->has_value());
    REQUIRE(**answer);
    return (***answer).read().getSubscription();
  }

  std::shared_ptr<memory_disk> disk = std::make_shared<memory_disk>();
  std::shared_ptr<memory_journal> log = std::make_shared<memory_journal>(disk);
  std::shared_ptr<fake_time> time = std::make_shared<fake_time>();
  std::shared_ptr<const toy_text> text = std::make_shared<toy_text>();
  request_id requests = 0;
  std::uint64_t randoms = 0;
  std::map<request_id, generation> generations;
  std::vector<trace_context> traces; ///< for which generations were asked for
  std::vector<schema::EndCause> abandoned;
  std::vector<errc> reports;
  std::map<std::uint64_t, inbox> inboxes;
  struct pin {
    std::string tenant;
    std::vector<token_id> tokens;
    std::uint32_t seconds;
  };
  std::vector<pin> pins; ///< that the cache was asked for; the first one has number 1
  std::vector<std::pair<std::string, std::uint64_t>> unpinned;
  std::optional<error> pin_refusal; ///< what the cache answers to a pin

 private:
  struct test_settings : caf::actor_system_config {
    test_settings() { set("scheduler.policy", caf::atom("testing")); }
  };
  test_settings settings_;

 public:
  caf::actor_system system;
  caf::scheduler::test_coordinator& scheduler;
  session_config config;

 private:
  router_actor::behavior_type router(router_actor::pointer self) {
    return {
      [this](const letter<schema::GenerateRequest>& mail, const generation_sink_actor& sink) {
        generations[mail.read().getRequest()] = {toy_generation(mail.read()), sink};
        traces.push_back(current_trace());
        return letter<schema::GenerateAccepted>();
      },
      [this](const letter<schema::CreditGrant>& mail) {
        generations[mail.read().getRequest()].credit += mail.read().getTokens();
      },
      [this](const letter<schema::CancelRequest>& mail) {
        for (const auto request : mail.read().getRequests())
          generations[request].ended = true;
        abandoned.push_back(mail.read().getCause());
      },
      [](const letter<schema::RouteExplainRequest>&) { return letter<schema::GenerateAccepted>(); },
      [](status_atom) { return letter<schema::ActorStatus>(); },
      [](drain_atom) { return letter<schema::Drained>(); },
      [this, self](stop_atom) {
        generations.clear(); // they hold sinks
        self->quit();
      },
    };
  }
  event_sink_actor::behavior_type event_sink() {
    return {
      [this](const letter<schema::EventBatch>& mail) {
        auto& box = inboxes[mail.read().getSubscription()];
        for (const auto event : mail.read().getEvents()) {
          box.ids.emplace_back(event.getId().cStr());
          box.types.emplace_back(event.getType().cStr());
          box.data.emplace_back(event.getData().cStr());
        }
        box.ended = mail.read().getEnded();
        box.error = mail.read().getErrorCode();
      },
    };
  }

  std::vector<common_actor> stops_;
  std::vector<cache_tiers_actor> caches_;
};

} // namespace godwit
