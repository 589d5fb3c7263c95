// The engine as it runs in a node: a thread for the device, CAF's workers for the rest.

#include "tests/unit/actors/engine/test_engine.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

using namespace godwit;
using namespace godwit::test;
using schema::FinishReason;

namespace {

struct threaded_config : caf::actor_system_config {
  threaded_config() { configure_scheduler(*this); }
};

/// What consumers got, and a way to wait for it.
class mailbox {
 public:
  void put(schema::TokenBatch::Reader batch) {
    const std::lock_guard lock(mutex_);
    take(box_, batch);
    ended_ += batch.getFinish() == FinishReason::NONE ? 0 : 1;
    changed_.notify_all();
  }

  /// @returns false if it takes too long
  bool wait_for_ends(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(120), [&] { return ended_ >= count; });
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
generation_sink_actor::behavior_type consumer(
  generation_sink_actor::pointer self, std::shared_ptr<mailbox> box, const router_actor& router) {
  return {[self, box = std::move(box), router](const letter<schema::TokenBatch>& mail) {
    box->put(mail.read());
    self->send(router, letter<schema::CreditGrant>::make([&](schema::CreditGrant::Builder b) {
      b.setRequest(mail.read().getRequest());
      b.setTokens(mail.read().getTokens().size());
    }));
  }};
}

struct threaded_engine {
  explicit threaded_engine(const engine_options& options) : system(config) {
    model_card card;
    card.id = "fake";
    card.text = std::make_shared<fake_text>();
    auto made =
      spawn_engine(system, std::make_unique<fake_model>(fake_model::small_shape(), log), card, options);
    GODWIT_CHECK(made.has_value());
    all = *made;
    sink = system.spawn(consumer, box, all.router);
  }

  ~threaded_engine() {
    caf::anon_send(all.router, stop_atom::value);
    caf::anon_send_exit(sink, caf::exit_reason::user_shutdown);
  }

  threaded_config config;
  caf::actor_system system;
  std::shared_ptr<fake_model::log> log = std::make_shared<fake_model::log>();
  std::shared_ptr<mailbox> box = std::make_shared<mailbox>();
  engine all;
  generation_sink_actor sink;
};

} // namespace

TEST_CASE("clients on several threads get the tokens of the definition, and cancels end what they name") {
  constexpr request_id per_thread = 25;
  threaded_engine at({.kv_tokens = 1024, .budget = 64, .chunk = 32});
  const auto ask_of = [](request_id id) {
    ask what;
    what.request = id;
    what.tokens = prompt_of(20 + id % 90, static_cast<std::uint32_t>(id % 7));
    what.max_tokens = 10 + static_cast<std::uint32_t>(id % 50);
    what.seed = id;
    what.credit = 1 + static_cast<std::uint32_t>(id % 8);
    return what;
  };
  std::vector<std::thread> clients;
  for (request_id first = 0; first < 4; ++first)
    clients.emplace_back([&, first] {
      for (request_id i = 1; i <= per_thread; ++i) {
        const auto id = first * per_thread + i;
        caf::anon_send(at.all.router, ask_of(id).mail(), at.sink);
        if (id % 5 == 0)
          caf::anon_send(
            at.all.router, letter<schema::CancelRequest>::make(
                             [&](schema::CancelRequest::Builder b) { b.initRequests(1).set(0, id); }));
      }
    });
  for (auto& client : clients)
    client.join();
  REQUIRE(at.box->wait_for_ends(4 * per_thread));
  for (request_id id = 1; id <= 4 * per_thread; ++id) {
    const auto got = at.box->of(id);
    const auto answer = ask_of(id).answer(512);
    CHECK(got.finals == 1);
    if (got.finish == FinishReason::CANCELLED) {
      CHECK(id % 5 == 0);
      CHECK(std::equal(got.tokens.begin(), got.tokens.end(), answer.begin()));
    } else {
      CHECK(got.tokens == answer);
    }
  }
}

TEST_CASE("the steps of a full engine follow one another") {
  threaded_engine at({.budget = 64, .chunk = 32});
  at.log->before_step = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  for (request_id id = 1; id <= 8; ++id)
    caf::anon_send(at.all.router,
      ask{.request = id,
        .tokens = prompt_of(30, static_cast<std::uint32_t>(id)),
        .max_tokens = 60,
        .credit = 60}
        .mail(),
      at.sink);
  REQUIRE(at.box->wait_for_ends(8));
  // 60 steps carry all eight streams; a few more carry the prompts. Streams that missed steps would need
  // more.
  CHECK(at.all.counters->steps <= 60 + 8);
  const auto pause = static_cast<double>(at.all.counters->pause_nanoseconds)
                     / static_cast<double>(std::max<std::uint64_t>(1, at.all.counters->pauses));
  WARN("mean pause between steps: " << pause / 1000 << " us");
}
