#include "tests/unit/actors/cache/tier_world.hpp"

#include <catch2/catch.hpp>

using namespace godwit;
using namespace godwit::test;

namespace {

constexpr std::uint64_t block_size = 512;

std::shared_ptr<memory_cold_store> disk() {
  return std::make_shared<memory_cold_store>();
}

tier_holdings suspend(tier_world& at, const std::vector<token_id>& tokens) {
  std::optional<tier_holdings> out;
  at.cache->suspend("t", tokens, [&](const result<tier_holdings>& left) { out = left.value(); });
  at.settle();
  return out.value();
}

} // namespace

TEST_CASE("without lower tiers the cache is the device's, and eviction is at once") {
  tier_world at(8);
  const auto text = at.text(4, 1);
  REQUIRE(at.compute(text));
  CHECK(at.touch(text) == 4);
  CHECK(at.evict(8) == 4);
  CHECK(at.touch(text) == 0);
  CHECK(at.pool->free_blocks() == 8);
}

TEST_CASE("blocks go down when they are asked for again, and not before") {
  tier_world at(16, {.host_bytes = 8 * block_size}, disk());
  const auto text = at.text(4, 1);
  REQUIRE(at.compute(text));
  at.settle();
  CHECK(at.counters->offloaded_blocks == 0);
  // Only half of it is asked for.
  CHECK(at.touch(std::span(text).first(2 * page_tokens)) == 2);
  CHECK(at.counters->offloaded_blocks == 2);
  CHECK(at.cold->stats().written == 2);
  CHECK(at.touch(text) == 4);
  CHECK(at.counters->offloaded_blocks == 4);
  CHECK(at.cold->stats().written == 4);
  CHECK(at.cold->parents_first);
  // Nothing twice.
  at.touch(text);
  CHECK(at.counters->offloaded_blocks == 4);
  CHECK(at.counters->stored_blocks == 4);
  const auto has = at.cache->probe("t", text);
  CHECK(has.device == 64);
  CHECK(has.host == 64);
  CHECK(has.disk == 64);
  CHECK(at.cache->probe("other", text).device == 0);
}

TEST_CASE("a setting says how often a block is asked for before it goes down, each one as soon as it is told "
          "of at 0") {
  const auto reuse = static_cast<std::uint8_t>(GENERATE(0, 1, 3));
  tier_world at(16, {.host_bytes = 8 * block_size, .reuse = reuse}, disk());
  const auto text = at.text(4, 1);
  REQUIRE(at.compute(text));
  at.cache->told("t", at.names(text));
  at.settle();
  for (unsigned asked = 0; asked < 5; ++asked) {
    INFO("asked for " << asked << " times");
    CHECK(at.cold->stats().written == (asked >= reuse ? 4U : 0U));
    CHECK(at.counters->offloaded_blocks == (asked >= reuse ? 4U : 0U));
    at.touch(text);
  }
  CHECK(at.cold->parents_first);
  // Of a text that the device has no room to remember nothing can be copied.
  at.cache->told("t", at.names(at.text(3, 9)));
  at.settle();
  CHECK(at.cold->stats().written == 4);
}

TEST_CASE("what the device gave up is brought from the host, and then the device has it again") {
  tier_world at(16, {.host_bytes = 8 * block_size});
  const auto text = at.text(4, 1);
  REQUIRE(at.compute(text));
  at.touch(text);
  CHECK(at.evict(16) == 4);
  const auto got = at.ask(1, text);
  CHECK(got->answer.blocks.empty());
  CHECK(got->answer.loading == 4);
  CHECK(got->answer.patience.count() > 0);
  CHECK(at.counters->onboard_staged == 4);
  at.settle();
  REQUIRE(got->load);
  CHECK(got->load->host == 4);
  CHECK(got->load->disk == 0);
  CHECK(at.right(*got, text));
  CHECK(at.counters->onboard_staged == 0);
  CHECK(at.counters->host_hits == 4);
  at.give_back(*got);
  CHECK(at.ask(2, text)->answer.blocks.size() == 4);
}

TEST_CASE("a look-up answers at once with what the device has, and brings the rest from both tiers") {
  const auto on_disk = disk();
  tier_world at(16, {.host_bytes = 4 * block_size}, on_disk);
  const auto text = at.text(6, 1);
  REQUIRE(at.compute(text));
  at.touch(text);
  // The host holds four of six; the disk all.
  CHECK(at.counters->offload_dropped == 2);
  CHECK(on_disk->stats().blocks == 6);
  // The device gives up the ends first.
  CHECK(at.evict(4) == 4);
  const auto got = at.ask(1, text);
  CHECK(got->answer.blocks.size() == 2);
  CHECK(got->answer.loading == 4);
  at.settle();
  REQUIRE(got->load);
  CHECK(got->load->host == 2);
  CHECK(got->load->disk == 2);
  CHECK(got->blocks.size() == 6);
  CHECK(at.right(*got, text));
}

TEST_CASE("after a restart the same prefix is found on disk, under the same key only") {
  const auto on_disk = disk();
  const auto text = tier_world::text(5, 1);
  {
    tier_world before(16, {}, on_disk);
    REQUIRE(before.compute(text));
    before.touch(text);
  }
  tier_world at(16, {}, on_disk);
  const auto got = at.ask(1, text);
  CHECK(got->answer.loading == 5);
  at.settle();
  CHECK(got->load->disk == 5);
  CHECK(at.right(*got, text));
  CHECK(at.ask(2, text, "other")->answer.loading == 0);
}

TEST_CASE("a block that is gone or does not check ends what is brought, nothing behind it is taken") {
  const auto on_disk = disk();
  const auto text = tier_world::text(5, 1);
  {
    tier_world before(16, {}, on_disk);
    REQUIRE(before.compute(text));
    before.touch(text);
  }
  tier_world at(16, {}, on_disk);
  on_disk->damaged = 3;
  const auto got = at.ask(1, text);
  at.settle();
  CHECK(got->blocks.size() == 3);
  CHECK(at.right(*got, text));
  CHECK(at.pool->free_blocks() == 13);
  at.give_back(*got);
  // Between the question and the read all may be lost.
  at.evict(16);
  on_disk->damaged = ~std::size_t{0};
  const auto late = at.ask(2, text);
  CHECK(late->answer.loading == 3);
  on_disk->lose_all();
  at.settle();
  CHECK(late->blocks.empty());
  CHECK(at.pool->free_blocks() == 16);
}

TEST_CASE("when the client leaves, blocks on their way are free again and nobody is told") {
  const auto on_disk = disk();
  const auto text = tier_world::text(12, 1);
  tier_world at(32, {.host_bytes = 6 * block_size}, on_disk);
  REQUIRE(at.compute(text));
  at.touch(text);
  at.evict(32);
  SECTION("before the first block") {
    const auto got = at.ask(1, text);
    at.cache->forgo(1);
    at.settle();
    CHECK_FALSE(got->load);
    CHECK(on_disk->stats().hits == 0);
  }
  SECTION("while the disk is read") {
    const auto got = at.ask(1, text);
    on_disk->before_read = [&] { at.cache->forgo(1); };
    at.settle();
    CHECK_FALSE(got->load);
    CHECK(at.counters->onboard_forgone == 1);
  }
  SECTION("and asks anew: the first question is forgotten") {
    const auto first = at.ask(1, text);
    const auto second = at.ask(1, text);
    at.settle();
    CHECK_FALSE(first->load);
    REQUIRE(second->load);
    CHECK(at.right(*second, text));
    at.give_back(*second);
    at.evict(32);
  }
  CHECK(at.counters->onboard_staged == 0);
  CHECK(at.pool->free_blocks() == 32);
}

TEST_CASE("without room nothing is brought, and the answer says so, sequences keep a block each for their "
          "next token") {
  tier_world at(8, {.host_bytes = 8 * block_size});
  const auto text = at.text(4, 1);
  REQUIRE(at.compute(text));
  at.touch(text);
  at.evict(8);
  std::vector<block_id> taken;
  for (int i = 0; i < 3; ++i)
    taken.push_back(at.pool->allocate_block().value());
  at.counters->sequences = 1;
  // Five are free, of which one is for the sequence and one for this prompt's own next block.
  const auto got = at.ask(1, text);
  CHECK(got->answer.loading == 0);
  CHECK(got->answer.waiting == 4);
  CHECK(at.counters->onboard_staged == 0);
  at.pool->release_block(taken.back());
  CHECK(at.ask(1, text)->answer.loading == 4);
  at.settle();
}

TEST_CASE("what nobody uses goes for blocks that are brought, but not what the same prompt found") {
  tier_world at(8, {.host_bytes = 16 * block_size});
  const auto text = at.text(5, 1);
  REQUIRE(at.compute(text));
  at.touch(text);
  at.evict(3);
  REQUIRE(at.compute(at.text(4, 2)));
  const auto got = at.ask(1, text);
  CHECK(got->answer.blocks.size() == 2);
  CHECK(got->answer.loading == 3);
  at.settle();
  CHECK(got->blocks.size() == 5);
  CHECK(at.right(*got, text));
}

TEST_CASE("an eviction waits for copies that hold blocks, and only then ends pins") {
  tier_world at(8, {.host_bytes = 16 * block_size});
  const auto pinned = at.text(2, 1);
  const auto text = at.text(4, 2);
  REQUIRE(at.compute(pinned));
  REQUIRE(at.compute(text));
  REQUIRE(at.cache->device().pin("t", pinned, prefix_cache::clock::now() + std::chrono::hours(1)));
  at.cache->swapped(at.names(text));
  std::optional<std::uint32_t> freed;
  at.cache->evict(3, [&](std::uint32_t blocks) { freed = blocks; });
  CHECK_FALSE(freed);
  at.settle();
  CHECK(freed == 3U);
  CHECK(at.cache->device().pins() == 1);
  CHECK(at.evict(3) == 3);
  CHECK(at.cache->device().pins() == 0);
}

TEST_CASE("a preempted sequence's blocks are copied though nobody asked for them, and not written to disk") {
  const auto on_disk = disk();
  tier_world at(16, {.host_bytes = 16 * block_size}, on_disk);
  const auto text = at.text(6, 1);
  REQUIRE(at.compute(text));
  at.cache->swapped(at.names(text));
  at.settle();
  CHECK(at.counters->swapped_blocks == 6);
  CHECK(on_disk->stats().written == 0);
  at.evict(16);
  CHECK(at.touch(text) == 6);
}

TEST_CASE("no more goes down at once than is allowed, the rest stays, and is counted") {
  tier_world at(16, {.host_bytes = 16 * block_size, .in_flight = 2}, disk());
  const auto text = at.text(6, 1);
  REQUIRE(at.compute(text));
  const auto got = at.ask(1, text);
  CHECK(at.counters->offload_dropped == 4);
  at.settle();
  CHECK(at.counters->offloaded_blocks == 2);
  at.give_back(*got);
  at.touch(text);
  at.touch(text);
  CHECK(at.counters->offloaded_blocks == 6);
}

TEST_CASE("a lane that takes nothing costs no block") {
  tier_world at(16, {.host_bytes = 16 * block_size}, disk());
  const auto text = at.text(6, 1);
  REQUIRE(at.compute(text));
  at.memory->most = at.write->most = at.read->most = 0;
  CHECK(at.touch(text) == 6);
  CHECK(at.counters->offloaded_blocks == 0);
  CHECK(at.counters->offload_dropped > 0);
  CHECK(at.evict(16) == 6);
  CHECK(at.pool->free_blocks() == 16);
  at.cache->count();
  CHECK(at.counters->host_blocks == 0);
  CHECK(at.counters->offload_waiting == 0);
}

TEST_CASE("a disk that refuses costs copies on disk and nothing else") {
  const auto on_disk = disk();
  on_disk->refuses = true;
  tier_world at(16, {.host_bytes = 16 * block_size}, on_disk);
  const auto text = at.text(6, 1);
  REQUIRE(at.compute(text));
  CHECK(at.touch(text) == 6);
  CHECK(at.counters->disk_degraded == 1);
  CHECK(at.counters->offload_dropped == 6);
  // It is not asked again at once.
  const auto asked = on_disk->stats().failures;
  at.touch(text);
  CHECK(on_disk->stats().failures == asked);
  at.evict(16);
  CHECK(at.touch(text) == 6);
  // A suspension keeps what it moves in host memory.
  const auto left = suspend(at, text);
  CHECK(left.device == 0);
  CHECK(left.host == 96);
  CHECK(left.disk == 0);
  on_disk->refuses = false;
  CHECK(suspend(at, text).disk == 96);
  CHECK(at.counters->disk_degraded == 0);
}

TEST_CASE("nobody waits behind a read that hangs") {
  const auto on_disk = disk();
  tier_world at(16, {}, on_disk);
  const auto text = at.text(3, 1);
  REQUIRE(at.compute(text));
  at.touch(text);
  at.evict(16);
  at.read->busy = std::chrono::seconds(5);
  CHECK(at.ask(1, text)->answer.loading == 0);
  at.read->busy = {};
  CHECK(at.ask(1, text)->answer.loading == 3);
  at.settle();
}

TEST_CASE("suspending moves a text to the lowest tier, frees device and host, and what others use stays") {
  const auto on_disk = disk();
  tier_world at(32, {.host_bytes = 16 * block_size}, on_disk);
  const auto text = at.text(6, 1);
  auto branch = at.text(5, 2);
  std::copy_n(text.begin(), 2 * page_tokens, branch.begin());
  REQUIRE(at.compute(text));
  REQUIRE(at.compute(branch));
  const auto left = suspend(at, text);
  CHECK(left.disk == 96);
  CHECK(left.device == 32);
  CHECK(at.cache->probe("t", branch).device == 80);
  CHECK(at.cold->parents_first);
  const auto got = at.ask(1, text);
  CHECK(got->answer.blocks.size() == 2);
  at.settle();
  CHECK(got->blocks.size() == 6);
  CHECK(got->load->disk == 4);
  CHECK(at.right(*got, text));
  at.give_back(*got);

  const auto gone = suspend(at, branch);
  CHECK(gone.device == 32);
  CHECK(suspend(at, text).device == 0);
  CHECK(suspend(at, text).host == 0);
  CHECK(at.pool->free_blocks() == 32);
  CHECK(at.counters->host_blocks == 0);
}

TEST_CASE("suspending waits until the device has closed the sequence") {
  tier_world at(32, {.host_bytes = 16 * block_size});
  const auto text = at.text(4, 1);
  REQUIRE(at.compute(text));
  const auto sequence = at.ask(1, text);
  std::optional<tier_holdings> out;
  at.cache->suspend("t", text, [&](const result<tier_holdings>& left) { out = left.value(); });
  at.settle();
  CHECK_FALSE(out);
  at.give_back(*sequence);
  at.tick();
  at.settle();
  REQUIRE(out);
  CHECK(out->device == 0);
  CHECK(out->host == 64);
}

TEST_CASE("without lower tiers suspending frees the pages") {
  tier_world at(8);
  const auto text = at.text(4, 1);
  REQUIRE(at.compute(text));
  CHECK(suspend(at, text).device == 0);
  CHECK(at.pool->free_blocks() == 8);
}

TEST_CASE("too many suspensions at once are refused") {
  tier_world at(64, {}, disk());
  unsigned refused = 0;
  for (std::uint32_t i = 0; i < 20; ++i) {
    const auto text = at.text(2, i);
    REQUIRE(at.compute(text));
    at.cache->suspend("t", text, [&](const result<tier_holdings>& left) {
      if (!left) {
        CHECK(left.error().code == errc::overloaded);
        ++refused;
      }
    });
  }
  CHECK(refused == 4);
  at.settle();
}

TEST_CASE(
  "a part is left to be computed while the blocks behind it are brought, those of the host before it") {
  const std::uint64_t host = GENERATE(0, 3);
  const auto on_disk = disk();
  tier_world at(32, {.host_bytes = host * block_size, .mode = onboarding::halved}, on_disk);
  const auto text = at.text(9, 1);
  REQUIRE(at.compute(text));
  at.touch(text);
  // The device has one block of them, the host its three or fewer.
  CHECK(at.evict(8) == 8);
  const auto got = at.ask(1, text);
  CHECK(got->answer.blocks.size() == 1);
  const auto there = static_cast<std::uint32_t>(host > 0 ? host : 1);
  CHECK(got->answer.gap == (9 - there) / 2);
  CHECK(got->answer.tail == 9 - there - got->answer.gap);
  CHECK(got->answer.loading == there - 1 + got->answer.tail);
  CHECK(at.counters->onboard_staged == got->answer.loading);
  CHECK(at.counters->onboard_loads == 1);
  CHECK(at.counters->onboard_overlapped == 1);
  CHECK(at.counters->onboard_declined == got->answer.gap);
  SECTION("all of them come") {
    at.settle();
    CHECK(got->load.has_value() == (host > 0));
    REQUIRE(got->tail);
    // Who comes first says that the other is still to come.
    CHECK(got->tail->loading + (got->load ? got->load->loading : 0)
          == (host > 0 ? (got->tail->loading > 0 ? there - 1 : got->answer.tail) : 0));
    CHECK(got->tail->first == there + got->answer.gap);
    CHECK(got->tail->blocks.size() == got->answer.tail);
    CHECK(got->tail->disk == got->answer.tail);
    CHECK(at.right(*got, text));
    // Without what stands before them they are nothing to the index.
    CHECK(at.cache->device().size() == there);
  }
  SECTION("some are lost meanwhile") {
    on_disk->damaged = 1;
    at.settle();
    REQUIRE(got->tail);
    CHECK(got->tail->blocks.size() == 1);
    CHECK(at.right(*got, text));
  }
  SECTION("the client leaves") {
    at.cache->forgo(1);
    at.settle();
    CHECK_FALSE(got->load);
    CHECK_FALSE(got->tail);
  }
  CHECK(at.counters->onboard_staged == 0);
  at.give_back(*got);
  at.evict(32);
  CHECK(at.pool->free_blocks() == 32);
}

TEST_CASE("a part is computed beside what is brought only if there is room for both") {
  tier_world at(8, {.mode = onboarding::halved}, disk());
  const auto text = at.text(6, 1);
  REQUIRE(at.compute(text));
  at.touch(text);
  at.evict(8);
  const auto taken = at.pool->allocate_block().value();
  at.counters->sequences = 1;
  // Seven are free, of which one is for the sequence, one for this prompt's own next block, and three to be
  // computed.
  CHECK(at.ask(1, text)->answer.waiting == 6);
  CHECK(at.counters->onboard_staged == 0);
  at.pool->release_block(taken);
  CHECK(at.ask(1, text)->answer.tail == 3);
  at.settle();
}
