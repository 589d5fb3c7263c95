#include "actors/device/device.hpp"

#include "actors/device/step_letters.hpp"
#include "tests/unit/actors/device/fake_model.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/send.hpp>
#include <catch2/catch.hpp>

using namespace godwit;

namespace {

struct deterministic_config : caf::actor_system_config {
  deterministic_config() { set("scheduler.policy", caf::atom("testing")); }
};

/// A device between two roles that only listen, and a cache without blocks.
struct fixture {
  fixture()
    : system(config), scheduler(dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler())),
      pool(std::move(*page_pool::create(test::fake_model::small_shape().kv, 16))) {
    cache = system.spawn([this](cache_actor::pointer) -> cache_actor::behavior_type {
      return {
        [](const letter<schema::CacheLookup>&, const cache_client_actor&) {},
        [this](const letter<schema::CacheInsert>& mail) {
          for (const auto block : mail.read().getBlocks())
            pool->release_block(block);
        },
        [](const letter<schema::CacheRelease>&) {},
        [](const letter<schema::CacheForgo>&) {},
        [](const letter<schema::CachePin>&) { return letter<schema::CachePinned>(); },
        [](const letter<schema::CacheUnpin>&) {},
        [](const letter<schema::CacheEvict>&) { return letter<schema::CacheEvicted>(); },
        [](const letter<schema::CacheProbe>&) { return letter<schema::CacheHoldings>(); },
        [](const letter<schema::CacheSuspend>&) { return letter<schema::CacheHoldings>(); },
        [](status_atom) { return letter<schema::ActorStatus>(); },
        [](drain_atom) { return letter<schema::Drained>(); },
        [](stop_atom) {},
      };
    });
    const auto listener = [this](std::vector<step_result>& results, int& freed) {
      return system.spawn([&](step_client_actor::pointer) -> step_client_actor::behavior_type {
        return {
          [&](const letter<schema::StepResult>& mail) { results.push_back(unpack(mail.read())); },
          [&](const letter<schema::BlocksFreed>&) { ++freed; },
        };
      });
    };
    prefill = listener(prefill_results, prefill_freed);
    decode = listener(decode_results, decode_freed);
    tested = system.spawn(device, std::make_shared<test::fake_model>(), pool,
      block_hasher(identity_key::random(), {}), cache, device_options{}, std::make_shared<engine_counters>());
    caf::anon_send(tested, join_atom::value, prefill, decode);
    settle();
  }

  ~fixture() {
    for (const auto& which : {caf::actor_cast<caf::actor>(tested), caf::actor_cast<caf::actor>(cache),
           caf::actor_cast<caf::actor>(prefill), caf::actor_cast<caf::actor>(decode)})
      caf::anon_send_exit(which, caf::exit_reason::user_shutdown);
    settle();
  }

  void settle() {
    while (scheduler.has_job())
      scheduler.run_once();
  }

  void submit(step_role role, step_number seen, std::vector<row_offer> rows, unsigned open_tokens = 0) {
    std::vector<opening_order> openings;
    if (open_tokens > 0) {
      opening_order order;
      order.tokens.assign(open_tokens, 1);
      order.ask = letter<schema::GenerateRequest>::make([&](schema::GenerateRequest::Builder b) {
        b.setRequest(rows.at(0).sequence);
        write_ids(b.initTokens(open_tokens), order.tokens);
        b.setPromptLength(open_tokens);
      });
      openings.push_back(order);
    }
    caf::anon_send(tested, pack_submission(role, seen, rows, openings));
    settle();
  }

  deterministic_config config;
  caf::actor_system system;
  caf::scheduler::test_coordinator& scheduler;
  std::shared_ptr<page_pool> pool;
  std::vector<step_result> prefill_results;
  std::vector<step_result> decode_results;
  int prefill_freed = 0;
  int decode_freed = 0;
  cache_actor cache;
  step_client_actor prefill;
  step_client_actor decode;
  device_actor tested;
};

} // namespace

TEST_CASE("a finished prompt is told to both roles, and the next step waits for both") {
  fixture at;
  at.submit(step_role::prefill, 0, {{1, 20}}, 20);
  REQUIRE(at.prefill_results.size() == 1);
  REQUIRE(at.decode_results.size() == 1);
  at.submit(step_role::decode, 1, {{1, 1}});
  CHECK(at.decode_results.size() == 1);
  at.submit(step_role::prefill, 1, {});
  CHECK(at.decode_results.size() == 2);
  CHECK(at.prefill_results.size() == 1);
}

TEST_CASE("a role that does not answer holds the device up for a while only") {
  fixture at;
  at.submit(step_role::prefill, 0, {{1, 20}}, 20);
  at.submit(step_role::decode, 1, {{1, 1}});
  CHECK(at.decode_results.size() == 1);
  for (int i = 0; i < 3 && at.scheduler.has_pending_timeout(); ++i) {
    at.scheduler.trigger_timeouts();
    at.settle();
  }
  CHECK(at.decode_results.size() == 2);
}

TEST_CASE("an idle device sets no timer") {
  fixture at;
  at.submit(step_role::prefill, 0, {{1, 20}}, 20);
  at.submit(step_role::decode, 1, {});
  at.submit(step_role::prefill, 1, {});
  at.scheduler.trigger_timeouts();
  at.settle();
  CHECK_FALSE(at.scheduler.has_pending_timeout());
}

TEST_CASE("pages that come free are told to those who starve") {
  fixture at;
  at.submit(step_role::prefill, 0, {{1, 250}}, 250);
  at.submit(step_role::decode, 1, {});
  at.submit(step_role::prefill, 1, {{2, 250}}, 250);
  REQUIRE(at.prefill_results.size() == 2);
  CHECK(at.prefill_results[1].rows.at(0).outcome == row_outcome::starved);
  CHECK(at.prefill_freed == 0);
  const std::vector<sequence_key> keys{1};
  caf::anon_send(at.tested, pack_close(keys));
  at.settle();
  CHECK(at.prefill_freed == 1);
  CHECK(at.decode_freed == 1);
}
