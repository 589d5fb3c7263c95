// The tiers as a node has them: lanes with threads over a store on disk that evicts all the time.

#include "tests/support/temporary_folder.hpp"
#include "tests/unit/actors/cache/tier_world.hpp"
#include "tests/unit/services/coldstore/texts.hpp"

#include <catch2/catch.hpp>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <thread>

using namespace godwit;
using namespace godwit::test;

namespace {

/// A disk that takes its time to read, so that much is evicted while a batch is read.
class slow_file final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  using FSRandomAccessFileOwnerWrapper::FSRandomAccessFileOwnerWrapper;
  rocksdb::IOStatus Read(std::uint64_t offset, std::size_t size, const rocksdb::IOOptions& options,
    rocksdb::Slice* out, char* scratch, rocksdb::IODebugContext* debug) const override {
    std::this_thread::sleep_for(std::chrono::microseconds(500));
    return FSRandomAccessFileOwnerWrapper::Read(offset, size, options, out, scratch, debug);
  }
};

class slow_disk final : public rocksdb::FileSystemWrapper {
 public:
  slow_disk() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "slow_disk"; }
  rocksdb::IOStatus NewRandomAccessFile(const std::string& name, const rocksdb::FileOptions& options,
    std::unique_ptr<rocksdb::FSRandomAccessFile>* made, rocksdb::IODebugContext* debug) override {
    const auto status = target()->NewRandomAccessFile(name, options, made, debug);
    if (status.ok())
      *made = std::make_unique<slow_file>(std::move(*made));
    return status;
  }
};

} // namespace

TEST_CASE("blocks that are brought from a disk that evicts meanwhile are the right ones or a miss") {
  const temporary_folder folder;
  const auto env = rocksdb::NewCompositeEnv(std::make_shared<slow_disk>());
  auto options = small_store(folder.path());
  options.env = env.get();
  options.scope.shape = tier_world::shape;
  const auto record = 128 + 8 + tier_world::shape.block_bytes();
  // A quarter of what the texts have.
  options.limit_bytes = 100 * record;
  options.write_buffer_bytes = std::size_t{16} << 10;
  constexpr std::uint32_t texts = 30;
  constexpr std::size_t blocks = 14;
  const std::shared_ptr<cold_store> disk = open_cold_store(options).value();
  const bool with_host = GENERATE(false, true);
  constexpr std::uint32_t pool_blocks = 96;
  tier_world at(pool_blocks, {.host_bytes = with_host ? 40 * tier_world::shape.block_bytes() : 0,
                               .cold = disk,
                               .in_flight = pool_blocks,
                               .mode = onboarding::always,
                               .lanes = threaded_lanes});

  std::mt19937 dice(7);
  struct request {
    request_id id = 0;
    std::vector<token_id> tokens;
    std::shared_ptr<tier_world::found> got;
  };
  std::vector<request> open;
  request_id next = 0;
  std::uint64_t wrong = 0;
  const auto finish = [&](request& one) {
    wrong += at.right(*one.got, one.tokens) ? 0U : 1U;
    const bool whole = one.got->blocks.size() == blocks;
    at.cache->forgo(one.id);
    at.give_back(*one.got);
    if (whole || !at.compute(one.tokens))
      return;
    // Asked for again: it goes down.
    const auto again = at.ask(++next, one.tokens);
    at.cache->forgo(next);
    at.give_back(*again);
  };
  const auto& counters = *at.counters;
  const auto enough = [&] {
    const auto stats = disk->stats();
    return counters.disk_hits > 200 && stats.evicted > 200 && stats.misses > 10;
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (!enough() && std::chrono::steady_clock::now() < end) {
    while (at.take_posted()) {
    }
    if (open.size() < 3) {
      const auto tokens = tier_world::text(blocks, static_cast<std::uint32_t>(dice() % texts));
      open.push_back({++next, tokens, at.ask(next, tokens)});
    }
    // Those who have all that they were told of, and some who do not wait for it.
    for (auto i = open.size(); i-- > 0;)
      if (open[i].got->answer.loading == 0 || open[i].got->load || dice() % 1000 == 0) {
        finish(open[i]);
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
      }
    if (at.pool->free_blocks() < pool_blocks / 2)
      at.cache->evict(pool_blocks / 4, [](std::uint32_t) {});
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  for (auto& one : open)
    finish(one);
  const auto all_free = [&] {
    while (at.take_posted()) {
    }
    at.cache->evict(pool_blocks, [](std::uint32_t) {});
    return at.pool->free_blocks() == pool_blocks && counters.onboard_staged == 0;
  };
  for (int i = 0; i < 10'000 && !all_free(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(at.pool->free_blocks() == pool_blocks);
  CHECK(counters.onboard_staged == 0);
  CHECK(wrong == 0);
  CHECK(counters.disk_hits > 200);
  CHECK((!with_host || counters.host_hits > 0));
  const auto stats = disk->stats();
  CHECK(stats.evicted > 200);
  CHECK(stats.misses > 10);
  CHECK(stats.damaged == 0);
  CHECK(stats.failures == 0);
  CHECK(stats.bytes <= options.limit_bytes);
}
