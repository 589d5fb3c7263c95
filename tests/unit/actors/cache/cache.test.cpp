#include "actors/cache/cache.hpp"

#include "actors/device/step_letters.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <catch2/catch.hpp>

using namespace godwit;

namespace {

struct deterministic_config : caf::actor_system_config {
  deterministic_config() { set("scheduler.policy", caf::atom("testing")); }
};

} // namespace

TEST_CASE("the cache finds what was inserted, takes back what is not needed, and gives up what is not used") {
  deterministic_config config;
  caf::actor_system system(config);
  auto& scheduler = dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  const auto settle = [&] {
    while (scheduler.has_job())
      scheduler.run_once();
  };
  const std::shared_ptr<page_pool> pool = std::move(*page_pool::create({1, 1, 8, kv_type::f16}, 8));
  const auto counters = std::make_shared<engine_counters>();
  const block_hasher hasher(identity_key::random(), {});
  auto tested = system.spawn(
    cache, pool, hasher, prefix_cache_options{.budget = 8, .pin_quota = 2}, tier_options{}, counters);
  std::vector<block_id> found;
  auto client = system.spawn([&](cache_client_actor::pointer) -> cache_client_actor::behavior_type {
    return {[&](const letter<schema::CacheFound>& mail) {
      CHECK(mail.read().getRequest() == 3);
      found = read_ids(mail.read().getBlocks());
    }};
  });

  const std::vector<token_id> tokens(48, 5);
  std::vector<block_id> blocks;
  for (int i = 0; i < 3; ++i)
    blocks.push_back(pool->allocate_block().value());
  std::vector<block_identity> names(3);
  hasher.chain(hasher.root("t"), tokens, names);
  caf::anon_send(tested, letter<schema::CacheInsert>::make([&](schema::CacheInsert::Builder b) {
    b.setTenant("t");
    write_names(b.initNames(6), names);
    write_ids(b.initBlocks(3), blocks);
  }));
  caf::anon_send(tested, letter<schema::CacheLookup>::make([&](schema::CacheLookup::Builder b) {
    b.setRequest(3);
    b.setTenant("t");
    write_ids(b.initTokens(48), tokens);
    b.setLimit(47);
  }),
    client);
  settle();
  CHECK(found == std::vector(blocks.begin(), blocks.begin() + 2));
  CHECK(counters->found_tokens == 32);

  const auto evict = [&] {
    caf::scoped_actor self{system};
    auto handle = self->request(tested, std::chrono::seconds(5),
      letter<schema::CacheEvict>::make([](schema::CacheEvict::Builder b) { b.setBlocks(8); }));
    settle();
    std::uint32_t freed = 0;
    handle.receive([&](const letter<schema::CacheEvicted>& mail) { freed = mail.read().getBlocks(); },
      [](const caf::error&) { FAIL(); });
    return freed;
  };
  CHECK(evict() == 1);
  caf::anon_send(tested, letter<schema::CacheRelease>::make(
                           [&](schema::CacheRelease::Builder b) { write_ids(b.initBlocks(2), found); }));
  settle();
  CHECK(evict() == 2);
  CHECK(pool->free_blocks() == 8);
  CHECK(counters->evicted_blocks == 3);
  CHECK(counters->cached_blocks == 0);

  caf::anon_send(tested, stop_atom::value);
  caf::anon_send_exit(client, caf::exit_reason::user_shutdown);
  settle();
}
